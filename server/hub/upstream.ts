/** The cluster of a hub, as the parts of the hub ask it with the hub's own credentials. */

export interface UpstreamAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface Upstream {
  /**
   * `path`: with the query, as it is sent. `timeoutMs`: until the whole answer is here.
   *
   * @throws UpstreamUnreachable when no answer came
   */
  send(
    request: {
      readonly method: string;
      readonly path: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: Buffer;
    },
    limits: { readonly timeoutMs: number },
  ): Promise<UpstreamAnswer>;
}

/** No answer came. The message says why, for people. */
export class UpstreamUnreachable extends Error {
  override readonly name = 'UpstreamUnreachable';
}
