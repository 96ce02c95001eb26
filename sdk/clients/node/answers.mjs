// What an answer over HTTP means.
import { QuiverError, Refused, Retry, Unknown } from './errors.mjs';
import { line } from './task.mjs';

export function document(body) {
  try {
    const read = JSON.parse(body.toString());
    return read && typeof read === 'object' && !Array.isArray(read) ? read : {};
  } catch {
    return {};
  }
}

/** Of an answer that is no success: 429 and 503 stored nothing; 504 may have. */
export function failure(status, body) {
  const told = document(body);
  const text = String(told.detail ?? told.error ?? (body.toString().slice(0, 200) || `status ${status}`));
  if (status === 504) return new Unknown(text);
  if ([408, 429, 503].includes(status)) return new Retry(text);
  if (status >= 400 && status < 500) return new Refused(text, status, told.id);
  return new Unknown(`${status}: ${text}`);
}

export function submitted(status, body) {
  const told = document(body);
  if (status !== 202 || typeof told.id !== 'string') throw failure(status, body);
  return { id: told.id, duplicate: Boolean(told.duplicate) };
}

export function outcome(status, body) {
  if (status === 200) return { state: 'done', result: body };
  if (status === 204) return { state: 'done', result: null };
  if (status === 422) {
    const told = document(body);
    return { state: 'dead', id: told.id, reason: String(told.reason ?? ''), error: String(told.error ?? told.detail ?? '') };
  }
  return { state: 'waiting', id: submitted(status, body).id };
}

/** What became of each line, in order.  Lines without an answer were not read. */
function lines(count, body) {
  const said = body.toString().split('\n').filter(Boolean).map((text) => {
    const told = document(Buffer.from(text));
    if (told.status === 202) return { id: String(told.id), duplicate: Boolean(told.duplicate) };
    return failure(told.status ?? 504, Buffer.from(text));
  });
  while (said.length < count) said.push(new Retry('the server stopped before this line; it was not stored'));
  return said.slice(0, count);
}

/** Tasks on their way as lines of JSON, a request after the other; those that no host would take are never sent. */
export class Lines {
  #left = [];
  #atOnce;

  constructor(tasks, atOnce) {
    this.#atOnce = atOnce;
    this.said = Array.from(tasks, (task, at) => {
      try {
        this.#left.push([at, `${JSON.stringify(line(task))}\n`]);
        return new Retry('an earlier task was not stored; this one was not sent');
      } catch (error) {
        if (error instanceof Refused) return error;
        throw error;
      }
    });
  }

  /** The next request's body; empty once all is sent. */
  next() {
    return this.#left.slice(0, this.#atOnce).map(([, text]) => text).join('');
  }

  /** Whether to go on: not behind a line that was not stored and might be later, which would overtake it. */
  answered(status, body) {
    const count = Math.min(this.#left.length, this.#atOnce);
    return this.#told(status === 200 ? lines(count, body) : Array(count).fill(failure(status, body)));
  }

  failed(error) {
    return this.#told(Array(Math.min(this.#left.length, this.#atOnce)).fill(error));
  }

  #told(told) {
    told.forEach((one, n) => { this.said[this.#left[n][0]] = one; });
    this.#left.splice(0, told.length);
    return !told.some((one) => one instanceof QuiverError && !(one instanceof Refused));
  }
}

export const results = (body) => (document(body).results ?? []).map(({ data, data_base64: base64, ...one }) => ({
  ...one, data: base64 !== undefined ? Buffer.from(base64, 'base64') : Buffer.from(data ?? ''),
}));

/** Of the document of a task. */
export function ended(id, told) {
  if (told.state === 'dead') return { state: 'dead', id, reason: told.reason ?? '', error: told.error ?? '' };
  return told.state === 'done' ? { state: 'done', id, result: null } : { state: 'waiting', id };
}
