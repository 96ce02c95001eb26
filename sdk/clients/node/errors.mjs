/** What a client throws: each says whether the same call may be made again. */
export class QuiverError extends Error {
  constructor(text) {
    super(text);
    this.name = this.constructor.name;
  }
}

/** Nothing was stored, and the same call will be refused again. */
export class Refused extends QuiverError {
  constructor(text, status = 400, id = undefined) {
    super(text);
    this.status = status;
    this.id = id; // of the task that is there already (409)
  }
}

/** Nothing was stored; the same call may succeed later. */
export class Retry extends QuiverError {}

/** Whether it was stored is not known: only a call with an idempotency key may be repeated without a second task. */
export class Unknown extends QuiverError {}
