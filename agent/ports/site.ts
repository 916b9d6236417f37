/** The connection of a machine to the relay of its site, and probes between machines (docs/witnesses.md). */

/** One end of the connection. Lines have no line end. */
export interface SiteLine {
  /** Address of the other end. */
  readonly address: string;
  /** Closes the connection if the other end does not read. */
  send(line: string): void;
  /** Sends what is left. Resolves when the connection has ended, after a bounded wait. */
  close(): Promise<void>;
}

export interface SiteLineEvents {
  received(line: string): void;
  /** Called once. */
  closed(): void;
}

/** The server of the relay calls it for each new connection. */
export type AcceptSiteLine = (line: SiteLine) => SiteLineEvents;

export type SiteJoining =
  | { readonly kind: 'joined'; readonly line: SiteLine }
  /** The relay does not watch its site. */
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'failed'; readonly cause: unknown };

/** Connects to the relay, until the signal is aborted. Never rejects. */
export type JoinSite = (events: SiteLineEvents, signal: AbortSignal) => Promise<SiteJoining>;

/** Where a machine answers probes. */
export interface WitnessAddress {
  readonly node: string;
  readonly address: string;
  readonly port: number;
}

/** Whether the machine with this name answers there in PROBE_TIMEOUT_MS. Never rejects. */
export type ProbeWitness = (target: WitnessAddress) => Promise<boolean>;
