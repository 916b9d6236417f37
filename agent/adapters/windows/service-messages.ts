/** What the agent and the thread that answers the service control manager send each other. */
export interface ServiceOptions {
  /** A control that has the effect of the preshutdown control, which no program can send. For tests. */
  readonly preshutdownControl?: number;
}

export type FromService =
  | { readonly kind: 'started'; readonly name: string }
  | { readonly kind: 'notService' }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'stop' }
  | { readonly kind: 'preshutdown' }
  /** Windows knows that the service has stopped. */
  | { readonly kind: 'ended' };

export type ToService =
  /** Time for a preshutdown. */
  { readonly kind: 'limit'; readonly limitMs: number } | { readonly kind: 'stopped'; readonly exitCode: number };
