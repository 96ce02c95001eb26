/// <reference types="node" />

export interface Task {
  id: string;
  key: string;
  handler: string;
  attempt: number;
  attempts_max: number;
  crashes: number;
  submitted_ms: number;
  fence_epoch: number;
  fence_start: number;
  payload: Buffer;
  /** Of an earlier attempt; empty: none. */
  checkpoint: Buffer;
  /** A Buffer: it was submitted as bytes. */
  headers: Record<string, string | Buffer>;
  fields: Record<string, unknown>;
  /** Aborted when the task was cancelled or its time is over. */
  stop: AbortSignal;
  tell(
    kind: 'log' | 'result' | 'submit' | 'checkpoint' | 'progress',
    body?: string | Uint8Array,
    fields?: Record<string, string | number>,
  ): void;
}

export class Outcome extends Error {
  constructor(kind: 'reject' | 'retry' | 'later' | 'limited' | 'unavailable', why?: string, fields?: { after_ms?: number });
  kind: 'reject' | 'retry' | 'later' | 'limited' | 'unavailable';
  fields: { after_ms?: number };
}

type Result = string | Uint8Array | null | undefined | void;

export function serve(
  handle: (task: Task) => Result | Promise<Result>,
  handler: string,
  options: { url: string | string[]; token?: string; signal?: AbortSignal },
): Promise<void>;
