/**
 * The relay of a site: it collects the heartbeats of machines and sends them in one request (docs/decisions/0040).
 *
 * A batch is sent 2 s after its first heartbeat, or earlier: when it is full, when all machines that are expected have
 * sent their heartbeats, or when one of them may wait no longer. A machine counts its interval from the answer, so
 * machines of one batch send the next heartbeat together. One machine leads: a batch is also sent half a second after
 * the leader's heartbeat. The other batches are delayed by more than the leader's, until they meet it. After some
 * rounds the heartbeats of a site are one batch.
 *
 * A machine receives the cluster's own answer. Without one it receives 503, and sends the heartbeat itself. So a relay
 * acknowledges only what is stored. Everything that waits here is bounded, and lost when the process is killed: the
 * connections of the machines break, and they send their heartbeats themselves.
 */
import { admitRequest, type RequestLimit } from '../../shared/access/request-throttle.ts';
import {
  LEASE_BATCH_BYTES_MAX,
  LEASE_BATCH_ITEMS_MAX,
  type LeaseBatchAnswerItem,
  type LeaseBatchItem,
} from '../../shared/fleet/nodes/lease-batch.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import type { AgentMeter } from '../ports/meter.ts';
import type { AgentTime } from '../ports/time.ts';
import { leasePath } from '../rules/lease.ts';
import { batchAnswers, batchRequest, notRelayed } from '../rules/relay.ts';
import { BATCH_WAIT_MS, COLLECT_AFTER_LEADER_MS, COLLECT_MS } from '../rules/relay-use.ts';

/** Batches that wait for their answers. Further ones are answered 503 at once. */
const BATCHES_IN_FLIGHT_MAX = 4;
/**
 * Batches that a relay sends, as the cluster limits them. A relay cannot check tokens, so anyone in the site can fill
 * batches: without this limit, as fast as the cluster answers, and each one is paid for.
 */
const BATCH_LIMIT: RequestLimit = { ratePerSecond: 1, burst: 20 };
/** A machine that sent a heartbeat within this time is expected to send the next one. Milliseconds. */
const EXPECTED_FOR_MS = 30_000;
/** Machines that are expected. Beyond it batches are collected for the whole time. */
const EXPECTED_MAX = 1_000;
/** Part of a batch that is no item. Bytes. */
const ENVELOPE_BYTES = 200;

export interface HeartbeatRelayOptions {
  /** The cluster, with the credentials of this machine. */
  readonly api: KubeApi;
  readonly time: AgentTime;
  readonly log: Log;
  readonly meter: Pick<AgentMeter, 'count'>;
}

interface Waiting {
  readonly item: LeaseBatchItem;
  readonly answer: (answer: LeaseBatchAnswerItem) => void;
}

interface OpenBatch {
  readonly waiting: Waiting[];
  bytes: number;
  /** When it is sent at the latest. Monotonic milliseconds. */
  dueAtMs: number;
  /** Aborted when the batch is sent. */
  readonly sealed: AbortController;
}

export class HeartbeatRelay {
  readonly #options: HeartbeatRelayOptions;
  #open: OpenBatch | undefined;
  /** Batches that wait for their answers. */
  readonly #inFlight = new Set<readonly Waiting[]>();
  /** The time at which BATCH_LIMIT was full. Monotonic milliseconds. */
  #fullAtMs: number | undefined;
  #isFailing = false;
  /** By path of the Lease, least recent first: the time of the last heartbeat. Monotonic milliseconds. */
  readonly #lastAtMs = new Map<string, number>();
  /** Path of the Lease of an expected machine. */
  #leader = '';

  constructor(options: HeartbeatRelayOptions) {
    this.#options = options;
  }

  /**
   * Relays one heartbeat. Resolves with the cluster's answer, or with 503. Never rejects.
   *
   * @param collectMs for how long it may be collected, as its machine asks. Milliseconds.
   */
  relay(item: LeaseBatchItem, collectMs = COLLECT_MS): Promise<LeaseBatchAnswerItem> {
    const bytes = Buffer.byteLength(JSON.stringify(item)) + 1;
    if (this.#open !== undefined && this.#open.bytes + bytes > LEASE_BATCH_BYTES_MAX) this.#seal(this.#open);
    this.#expect(item.path);
    const batch = this.#open ?? this.#begin();
    const answered = new Promise<LeaseBatchAnswerItem>((answer) => batch.waiting.push({ item, answer }));
    batch.bytes += bytes;
    if (batch.waiting.length >= LEASE_BATCH_ITEMS_MAX || this.#hasAll(batch)) this.#seal(batch);
    else this.#sealWithin(batch, item.path === this.#leader ? COLLECT_AFTER_LEADER_MS : collectMs);
    return answered;
  }

  /**
   * This machine is silent on the site's network, and is to be reported. A heartbeat that it sent before, and that is
   * stored after the report, would void the report. So one that waits here is answered 503: a machine that lives sends
   * it directly.
   *
   * @returns whether one is on its way to the cluster
   */
  withhold(nodeName: string): boolean {
    const path = leasePath(nodeName);
    const isOf = ({ item }: Waiting): boolean => item.path === path;
    const { waiting = [] } = this.#open ?? {};
    for (let at = waiting.findIndex(isOf); at >= 0; at = waiting.findIndex(isOf)) {
      for (const { answer } of waiting.splice(at, 1)) answer(notRelayed('the machine does not answer in its site'));
    }
    return [...this.#inFlight].some((batch) => batch.some(isOf));
  }

  #begin(): OpenBatch {
    const batch: OpenBatch = {
      waiting: [],
      bytes: ENVELOPE_BYTES,
      dueAtMs: Number.POSITIVE_INFINITY,
      sealed: new AbortController(),
    };
    batch.sealed.signal.addEventListener('abort', () => void this.#send(batch), { once: true });
    this.#open = batch;
    return batch;
  }

  #seal(batch: OpenBatch): void {
    if (this.#open === batch) this.#open = undefined;
    batch.sealed.abort();
  }

  #sealWithin(batch: OpenBatch, milliseconds: number): void {
    const { time } = this.#options;
    const dueAtMs = time.monotonicMs() + milliseconds;
    if (dueAtMs >= batch.dueAtMs) return;
    batch.dueAtMs = dueAtMs;
    void time.sleep(milliseconds, batch.sealed.signal).then(() => this.#seal(batch));
  }

  #expect(path: string): void {
    const nowMs = this.#options.time.monotonicMs();
    this.#lastAtMs.delete(path);
    this.#lastAtMs.set(path, nowMs);
    for (const [each, atMs] of this.#lastAtMs) {
      if (nowMs - atMs < EXPECTED_FOR_MS && this.#lastAtMs.size <= EXPECTED_MAX) break;
      this.#lastAtMs.delete(each);
    }
    if (!this.#lastAtMs.has(this.#leader)) this.#leader = path;
  }

  #hasAll({ waiting }: OpenBatch): boolean {
    return waiting.length >= this.#lastAtMs.size && this.#lastAtMs.size < EXPECTED_MAX;
  }

  async #send({ waiting }: OpenBatch): Promise<void> {
    const { api, log, meter, time } = this.#options;
    if (waiting.length === 0) return;
    if (this.#inFlight.size >= BATCHES_IN_FLIGHT_MAX) return this.#refuse(waiting, 'too many batches wait for answers');
    const admission = admitRequest(this.#fullAtMs, time.monotonicMs(), BATCH_LIMIT);
    if (admission.kind === 'refused') return this.#refuse(waiting, 'more than one batch per second');
    this.#fullAtMs = admission.fullAtMs;
    this.#inFlight.add(waiting);
    const items = waiting.map(({ item }) => item);
    const answer = await api.send({ ...batchRequest(items), timeoutMs: BATCH_WAIT_MS });
    this.#inFlight.delete(waiting);
    const outcome = batchAnswers(answer, items);
    if (outcome.kind === 'failed') {
      if (!this.#isFailing) log.warn('heartbeats cannot be relayed', { why: outcome.why, machines: waiting.length });
      this.#isFailing = true;
      return this.#refuse(waiting, outcome.why);
    }
    if (this.#isFailing) log.info('heartbeats are relayed again');
    this.#isFailing = false;
    meter.count('nodekeeper_agent_relay_batches_total', { outcome: 'answered' });
    for (const [index, each] of waiting.entries()) {
      const item = outcome.items[index]!;
      meter.count('nodekeeper_agent_relayed_heartbeats_total', { code: String(item.status) });
      each.answer(item);
    }
  }

  #refuse(waiting: readonly Waiting[], why: string): void {
    this.#options.meter.count('nodekeeper_agent_relay_batches_total', { outcome: 'failed' });
    for (const { answer } of waiting) answer(notRelayed(why));
  }
}
