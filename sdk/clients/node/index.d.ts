/// <reference types="node" />

/** Times are milliseconds; `at` is a Date or unix milliseconds. */
export interface TaskOptions {
  key?: string;
  lane?: 'high' | 'normal' | 'low';
  delay?: number;
  at?: Date | number;
  unique?: number;
  merge?: boolean;
  debounce?: number;
  timeout?: number;
  attempts?: number;
  headers?: Record<string, string | Uint8Array>;
  traceparent?: string;
  idempotencyKey?: string;
}

export interface Task extends TaskOptions {
  handler: string;
  payload?: string | Uint8Array;
}

export interface Submitted {
  id: string;
  /** It was stored before, under its idempotency key. */
  duplicate: boolean;
}

export type Outcome =
  | { state: 'done'; id?: string; result: Buffer | null }
  | { state: 'dead'; id?: string; reason: string; error: string }
  | { state: 'waiting'; id: string };

export interface Result {
  receipt: string;
  id: string;
  key: string;
  handler: string;
  at_ms: number;
  data: Buffer;
}

export class QuiverError extends Error {}
/** Nothing was stored, and the same call will be refused again. */
export class Refused extends QuiverError {
  readonly status: number;
  /** Of the task that is there already. */
  readonly id?: string;
}
/** Nothing was stored; the same call may succeed later. */
export class Retry extends QuiverError {}
/** Whether it was stored is not known. */
export class Unknown extends QuiverError {}

export interface ClientOptions {
  token?: string;
  timeout?: number;
  /** How often a call with an idempotency key is made again. */
  repeats?: number;
  connections?: number;
}

export class Client {
  constructor(url: string, options?: ClientOptions);
  close(): void;
  submit(handler: string, payload?: string | Uint8Array, options?: TaskOptions): Promise<Submitted>;
  submitMany(tasks: Iterable<Task>): Promise<Array<Submitted | QuiverError>>;
  call(handler: string, payload?: string | Uint8Array, options?: TaskOptions & { wait?: number }): Promise<Outcome>;
  /** Without the result, which is among results(). */
  wait(id: string, wait?: number): Promise<Outcome>;
  task(id: string): Promise<Record<string, unknown>>;
  cancel(id: string): Promise<Record<string, unknown>>;
  status(): Promise<Record<string, unknown>>;
  results(options?: { max?: number; lease?: number }): Promise<Result[]>;
  commit(results: Iterable<Result | string>): Promise<{ committed: number; refused: string[] }>;
}

export class RedisClient {
  /** `client` is a connected client or cluster of the package "redis". */
  constructor(client: unknown, app: string, options?: { maxPayload?: number; timeout?: number; reopen?: () => Promise<unknown> });
  close(): Promise<void>;
  shards(): Promise<number>;
  submit(handler: string, payload?: string | Uint8Array, options?: TaskOptions): Promise<Submitted>;
  submitMany(tasks: Iterable<Task>): Promise<Array<Submitted | QuiverError>>;
  call(handler: string, payload?: string | Uint8Array, options?: TaskOptions & { wait?: number }): Promise<Outcome>;
  wait(id: string, wait: number): Promise<Outcome>;
}

export function connect(url: string, options?: ClientOptions): Promise<Client>;
export function connect(url: string, options: { app: string; maxPayload?: number; timeout?: number; sentinel?: object; [option: string]: unknown }): Promise<RedisClient>;
