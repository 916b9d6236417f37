/** What the local mode and a function's worker say to each other. */
export interface WorkerSetup {
  readonly codePath: string;
  /** `index.handler`. */
  readonly handler: string;
  readonly functionName: string;
  readonly functionArn: string;
  readonly memoryMegabytes: number;
  /** The only authority the function's TLS connections trust. */
  readonly caPem: string | undefined;
  /** One Int32 that is RUNNING or FROZEN. Undefined: the thread keeps running between events. */
  readonly freezer: SharedArrayBuffer | undefined;
}

/** Values of the freezer. The worker writes FROZEN before it reports the end of an event: no wake-up is lost. */
export const FROZEN = 0;
export const RUNNING = 1;

/** Node.js reads it when a thread starts. The worker then deletes it: Lambda sets no such variable. */
export const COMPILE_CACHE_VARIABLE = 'NODE_COMPILE_CACHE';

export interface InvokeMessage {
  readonly kind: 'invoke';
  readonly requestId: string;
  readonly deadlineMs: number;
  /** `_X_AMZN_TRACE_ID` of the invocation. */
  readonly traceHeader: string;
  /** JSON text, as Lambda passes events. */
  readonly event: string;
}

/** The part of a streamed response that has been written went out; the next may come. */
export interface ChunkTakenMessage {
  readonly kind: 'chunkTaken';
}

/** The argument of `HttpResponseStream.from`: the head of a streamed HTTP response. */
export interface StreamHead {
  readonly statusCode?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cookies?: readonly string[];
}

export type WorkerMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'initFailed'; readonly error: FunctionError }
  | { readonly kind: 'output'; readonly stream: 'stdout' | 'stderr'; readonly text: string }
  | { readonly kind: 'streamHead'; readonly requestId: string; readonly head: StreamHead }
  | { readonly kind: 'streamChunk'; readonly requestId: string; readonly chunk: Uint8Array }
  | { readonly kind: 'result'; readonly requestId: string; readonly payload: string }
  | { readonly kind: 'failed'; readonly requestId: string; readonly error: FunctionError };

/** The form in which Lambda reports an error. */
export interface FunctionError {
  readonly errorType: string;
  readonly errorMessage: string;
  readonly stack: string;
}
