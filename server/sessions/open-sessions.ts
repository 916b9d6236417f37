/** The sessions that are open. Each ends when its pod is deleted, when it rests, and with the process. */
import type { KubePod } from '../../shared/kinds/types.ts';

/** Upstream's streaming-connection-idle-timeout. Source: pkg/kubelet/apis/config/v1beta1/defaults.go. Milliseconds. */
const IDLE_MS_MAX = 4 * 60 * 60_000;
/** Between two looks at the pods of the sessions. Milliseconds. */
const CHECK_EVERY_MS = 5_000;

export interface OpenSessionsOptions {
  readonly monotonicMs: () => number;
  readonly findPod: (namespace: string, name: string) => Promise<KubePod | undefined>;
}

interface OpenSession {
  readonly pod: KubePod;
  readonly end: AbortController;
  /** Monotonic milliseconds. */
  seenMs: number;
}

export class OpenSessions {
  readonly #options: OpenSessionsOptions;
  readonly #open = new Set<OpenSession>();
  readonly #timer: NodeJS.Timeout;
  #isChecking = false;

  constructor(options: OpenSessionsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      if (this.#isChecking) return;
      this.#isChecking = true;
      void this.check().finally(() => {
        this.#isChecking = false;
      });
    }, CHECK_EVERY_MS);
    this.#timer.unref();
  }

  /** A session is open until `close`. `ended` is aborted with a sentence for its client. */
  add(pod: KubePod): { readonly ended: AbortSignal; readonly onActivity: () => void; close(): void } {
    const session: OpenSession = { pod, end: new AbortController(), seenMs: this.#options.monotonicMs() };
    this.#open.add(session);
    return {
      ended: session.end.signal,
      onActivity: () => {
        session.seenMs = this.#options.monotonicMs();
      },
      close: () => this.#open.delete(session),
    };
  }

  /** Ends those that may not continue. */
  async check(): Promise<void> {
    for (const { pod, end, seenMs } of this.#open) {
      if (this.#options.monotonicMs() - seenMs >= IDLE_MS_MAX)
        end.abort(`nothing was sent for ${IDLE_MS_MAX / 3_600_000} h`);
      const { namespace = '', name = '', uid } = pod.metadata;
      const current = await this.#options.findPod(namespace, name).catch(() => pod);
      if (current?.metadata.uid !== uid) end.abort(`pod ${name} was deleted`);
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    for (const { end } of this.#open) end.abort('the API stops');
  }
}
