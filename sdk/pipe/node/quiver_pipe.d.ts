/// <reference types="node" />

export interface Task {
  id: string;
  key: string;
  handler: string;
  lane: 'low' | 'normal' | 'high';
  attempt: number;
  attempts_max: number;
  crashes: number;
  submitted_ms: number;
  fence_epoch: number;
  fence_start: number;
  /** Left at the start; there only if the handler has a timeout. */
  deadline_ms?: number;
  payload: Buffer;
  /** Of an earlier attempt; empty: none. */
  checkpoint: Buffer;
  /** A Buffer: it was submitted as bytes. */
  headers: Record<string, string | Buffer>;
  fields: Record<string, string>;
  tell(
    kind: 'log' | 'result' | 'submit' | 'checkpoint' | 'progress',
    body?: string | Uint8Array,
    fields?: Record<string, string | number>,
  ): void;
  /** The fencing token of the lock; null: somebody else has it. */
  trylock(name: string, ttl_ms: number): Promise<bigint | null>;
  /** false: it was no longer held with that token. */
  unlock(name: string, token: bigint): Promise<boolean>;
  next_id(): Promise<bigint>;
  /** The number of the entry. */
  room_append(room: string, data: string | Uint8Array): Promise<bigint>;
}

export class Outcome extends Error {
  constructor(kind: 'reject' | 'retry' | 'later' | 'limited' | 'unavailable', why?: string, fields?: { after_ms?: number });
  kind: 'reject' | 'retry' | 'later' | 'limited' | 'unavailable';
  fields: { after_ms?: number };
}

export class ServiceError extends Error {
  constructor(service: string, error: string, text: string);
  /** 'ETIMEDOUT', for example. */
  error: string;
}

type Result = string | Uint8Array | null | undefined | void;

export function serve(handle: (task: Task) => Result | Promise<Result>): Promise<void>;
