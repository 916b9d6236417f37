/** How this machine proves who it is, request by request. */
export interface Credentials {
  /** The bearer token of the next request. Rejects while there is none to be had. */
  bearer(): Promise<string>;
  /**
   * Told of every answer. True when the token that was just refused can be replaced by one that may do: worth one more
   * try. `serverTimeMs`: the server's clock as the answer gave it, milliseconds since the epoch. `token`: the one it answers;
   * the newest when absent.
   */
  answered(answer: { readonly status: number; readonly serverTimeMs?: number; readonly token?: string }): boolean;
}
