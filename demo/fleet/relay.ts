/**
 * The relay of one zone of the simulated fleet: it collects heartbeats for 2 s and sends them in one request, as the
 * agent's relay does (docs/relay.md). It can be killed: its machines then send their heartbeats directly at once, and
 * try it again after a minute.
 */
import { batchAnswers, batchRequest, notRelayed } from '../../agent/rules/relay.ts';
import type { Clock } from '../../shared/clock.ts';
import { LEASE_BATCH_ITEMS_MAX, type LeaseBatchAnswerItem } from '../../shared/fleet/nodes/lease-batch.ts';
import type { ApiAnswer, ApiRequest, SendRequest } from './api-client.ts';
import type { Timers } from './machine.ts';

const COLLECT_MS = 2_000;
/** After a failure a machine does not use the relay for this long. Milliseconds. */
const RETRY_AFTER_MS = 60_000;
const RENEWAL = /\/namespaces\/kube-node-lease\/leases\/([^/?]+)$/;

export type RelayState = 'running' | 'killed';

export interface RelayDependencies {
  readonly send: SendRequest;
  /** The token of the fleet; it stands for the tokens of all machines. */
  readonly token: string;
  readonly clock: Clock;
  readonly timers: Timers;
}

interface Waiting {
  readonly request: ApiRequest;
  readonly settle: (answer: LeaseBatchAnswerItem) => void;
}

export class ZoneRelay {
  readonly #dependencies: RelayDependencies;
  #state: RelayState = 'running';
  #waiting: Waiting[] = [];
  #timer: unknown;
  /** By machine: until when it sends directly. Epoch milliseconds. */
  readonly #directUntilMs = new Map<string, number>();

  constructor(dependencies: RelayDependencies) {
    this.#dependencies = dependencies;
  }

  start(): void {
    this.#state = 'running';
  }

  /** What it collected is lost, and its machines notice at once. */
  kill(): void {
    this.#state = 'killed';
    for (const { settle } of this.#take()) settle(notRelayed('the relay was killed'));
  }

  /** Whether the next heartbeat of this machine passes through it. */
  isUsedBy(machine: string): boolean {
    return this.#state === 'running' && this.#dependencies.clock.nowMs() >= (this.#directUntilMs.get(machine) ?? 0);
  }

  /**
   * Sends a heartbeat of a machine through the relay, and directly if the relay fails. Other requests are sent
   * directly.
   */
  async send(request: ApiRequest): Promise<ApiAnswer> {
    const { send, clock } = this.#dependencies;
    const machine = request.method === 'PUT' ? RENEWAL.exec(request.path)?.[1] : undefined;
    if (machine === undefined || clock.nowMs() < (this.#directUntilMs.get(machine) ?? 0)) return send(request);
    const { status, body } =
      this.#state === 'killed' ? notRelayed('the relay was killed') : await this.#collect(request);
    if (status === 200) return { kind: 'answered', status, body };
    if (status !== 409 && status !== 404) this.#directUntilMs.set(machine, clock.nowMs() + RETRY_AFTER_MS);
    return send(request);
  }

  #collect(request: ApiRequest): Promise<LeaseBatchAnswerItem> {
    return new Promise((settle) => {
      this.#waiting.push({ request, settle });
      if (this.#waiting.length >= LEASE_BATCH_ITEMS_MAX) void this.#flush();
      else this.#timer ??= this.#dependencies.timers.set(() => void this.#flush(), COLLECT_MS);
    });
  }

  #take(): Waiting[] {
    if (this.#timer !== undefined) this.#dependencies.timers.clear(this.#timer);
    this.#timer = undefined;
    return this.#waiting.splice(0);
  }

  async #flush(): Promise<void> {
    const { send, token } = this.#dependencies;
    const waiting = this.#take();
    const items = waiting.map(({ request: { path, body } }) => ({
      method: 'PUT' as const,
      path,
      token,
      body: JSON.stringify(body),
    }));
    const { path, body } = batchRequest(items);
    const outcome = batchAnswers(await send({ method: 'POST', path, body, urgent: true }), items);
    for (const [index, { settle }] of waiting.entries()) {
      settle(outcome.kind === 'answered' ? outcome.items[index]! : notRelayed(outcome.why));
    }
  }
}
