/**
 * Sites with a relay: each zone is one. Most machines of a zone send their heartbeats through it, and directly when it
 * fails. Relay and route are the agent's own code (agent/app/relay.ts, relay-route.ts) on virtual time.
 *
 * The relay of a zone runs on its first machine that uses no relay, and is down while that machine is off. Requests
 * inside the site do not pass through the simulated network. The batches of a relay do, with its faults.
 */
import { HeartbeatRelay } from '../agent/app/relay.ts';
import { type RelayRouteOptions, withRelay } from '../agent/app/relay-route.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../agent/ports/kube-api.ts';
import { relayedRequest } from '../agent/rules/relay.ts';
import { earliestStoredMs, limitedAttempt } from '../agent/rules/relay-use.ts';
import { isRenewal } from '../server/routes.ts';
import type { LeaseBatchAnswerItem } from '../shared/fleet/nodes/lease-batch.ts';
import type { Log } from '../shared/observability/log.ts';
import { boundToken } from './access.ts';
import type { EndpointRequest } from './endpoint.ts';
import type { FaultPlan } from './faults/catalogue.ts';
import type { Send } from './faults/faulty-network.ts';
import { type DoorUse, type SendRequest, throughDoors } from './heartbeat-doors.ts';
import { answered, answerOf, apiOver, endpointRequest, kubeApi } from './kube-requests.ts';
import type { TrueMachine } from './laws/law.ts';
import { hashOf, seededFraction } from './seeded-random.ts';
import { never, type VirtualTime } from './virtual-time.ts';

/** Share of the machines that use the relay of their site. */
const RELAYED_SHARE = 0.7;
/** One way inside a site. Milliseconds. */
const SITE_LATENCY_MS = 2;
/** Request timeout of an agent. Milliseconds. */
const TIMEOUT_MS = 10_000;
/** A relay that is killed again and again runs in every second one of these. Milliseconds. */
const CRASH_LOOP_MS = 20_000;
/** Below this severity of `relayDown` it is killed again and again. Above it does not run. */
const CRASH_LOOP_BELOW = 0.6;
/** Longer than the tokens of the batch are valid. Milliseconds. */
const HELD_MAX_MS = 300_000;
/** The share of the held ones that the relay sent before. */
const REPEATED_SHARE = 0.6;
/** Shares at the worst severity. */
const SHARES = { lostRequest: 0.4, lostAnswer: 0.3, held: 0.9, waysHang: 0.3 };

/** Attempts to send one heartbeat while no answer arrives. */
const ATTEMPTS_MAX = 2;

/** What came of a heartbeat that was sent through a relay. */
export type RelayMark = 'stored' | 'conflict' | 'expired' | 'failed' | 'used-again' | 'mistrusted' | 'interval-short';

/** A machine of a site. */
interface SiteMachine {
  readonly name: string;
  readonly zone: string;
  /** The interval of heartbeats that it follows. Milliseconds. */
  intervalMs(): number;
  /** Whether it was switched off. Its requests then never return. */
  isGone(): boolean;
}

export interface SiteRelays {
  isUsedBy(name: string): boolean;
  /** Requests of a machine: heartbeats through the relay of its site, everything else directly. */
  through(machine: SiteMachine, direct: SendRequest): SendRequest;
}

export interface SiteRelaysOptions {
  readonly seed: number;
  readonly zones: number;
  readonly time: VirtualTime;
  /** With numbers of its own. */
  readonly plan: FaultPlan;
  readonly send: Send;
  /** All machines, in the order in which they were added. */
  readonly machines: () => ReadonlyMap<string, TrueMachine>;
  readonly doorOf: (name: string) => DoorUse;
  readonly onMark: (mark: RelayMark, node: string) => void;
  /** A bug to plant in the route of a machine. */
  readonly route?: ((options: RelayRouteOptions) => KubeApi) | undefined;
}

export function siteRelays(options: SiteRelaysOptions): SiteRelays {
  const { seed, zones, time, onMark, route = withRelay } = options;
  const sites = new Map<string, Site>();
  /** The first machine of each zone is there for its relay. */
  const isUsedBy = (name: string): boolean =>
    Number(name.slice('m-'.length)) >= zones && seededFraction(hashOf(`${seed} relay of ${name}`))() < RELAYED_SHARE;

  function siteOf(zone: string): Site {
    const site = sites.get(zone) ?? new Site(zone, options, isUsedBy);
    sites.set(zone, site);
    return site;
  }

  return {
    isUsedBy,
    through(machine, direct) {
      const { name: nodeName, zone, intervalMs } = machine;
      const site = siteOf(zone);
      const api = route({
        relay: site.clientOf(machine),
        direct: site.directClientOf(nodeName, apiOver(direct, nodeName)),
        nodeName,
        monotonicMs: time.nowMs,
        log: routeLog(nodeName, onMark),
      });
      let storedAtMs: number | undefined;
      return async (request) => {
        if (!isRenewal(request)) return direct(request);
        const { method, path, body } = request;
        for (let attempt = 1; ; attempt += 1) {
          const fromMs = time.nowMs();
          const heartbeat = { intervalMs: intervalMs(), storedAtMs };
          const answer = await api.send({ method: method as 'PUT', path, body, heartbeat, timeoutMs: TIMEOUT_MS });
          if (answer.kind === 'failed' && attempt < ATTEMPTS_MAX) continue;
          if (answer.kind === 'answered' && answer.status === 200) {
            const isRelayed = answer.isRelayed === true;
            storedAtMs = earliestStoredMs({ fromMs, answeredAtMs: time.nowMs(), isRelayed });
          }
          return answerOf(answer);
        }
      };
    },
  };
}

/** One process of a relay. */
interface RunningRelay {
  /** Machine and start: another process has another one. */
  readonly key: string;
  readonly relay: HeartbeatRelay;
}

class Site {
  readonly #zone: string;
  readonly #options: SiteRelaysOptions;
  readonly #usesRelay: (name: string) => boolean;
  #running: RunningRelay | undefined;
  /** Machines with a direct request that will hang, if it is sent until then. Milliseconds. */
  readonly #hangsDirectly = new Map<string, number>();

  constructor(zone: string, options: SiteRelaysOptions, usesRelay: (name: string) => boolean) {
    this.#zone = zone;
    this.#options = options;
    this.#usesRelay = usesRelay;
  }

  /** The relay as a machine reaches it, with a token for each heartbeat. */
  clientOf(machine: SiteMachine): KubeApi {
    return kubeApi((request) => this.#request(machine, request));
  }

  /** The direct way of a machine. */
  directClientOf(name: string, api: KubeApi): KubeApi {
    const { time } = this.#options;
    return kubeApi((request) => {
      const untilMs = this.#hangsDirectly.get(name) ?? 0;
      this.#hangsDirectly.delete(name);
      if (time.nowMs() > untilMs) return api.send(request);
      const { timeoutMs = TIMEOUT_MS } = limitedAttempt(request, time.nowMs());
      return time.sleep(timeoutMs).then(() => TIMED_OUT);
    });
  }

  async #request({ name, isGone }: SiteMachine, request: KubeRequest): Promise<KubeAnswer> {
    const { time, plan, onMark } = this.#options;
    const limit = time.sleep(request.timeoutMs ?? TIMEOUT_MS).then(() => TIMED_OUT);
    const body = JSON.stringify(request.body);
    const token = boundToken(name, body, time.nowMs());
    await time.sleep(SITE_LATENCY_MS);
    if (isGone()) return never();
    const running = this.#process();
    if (running === undefined) return REFUSED;
    if (plan.strikes('waysHang', SHARES.waysHang)) {
      this.#hangsDirectly.set(name, time.nowMs() + (request.timeoutMs ?? TIMEOUT_MS));
      return limit;
    }
    if (plan.strikes('relayDrops', SHARES.lostRequest)) return limit;
    const received = relayedRequest({
      method: request.method,
      target: request.path,
      authorization: `Bearer ${token}`,
      collect: request.collectMs?.toString(),
      body,
    });
    if (received.kind === 'refused') return answered(received.answer);
    const relayed = running.relay.relay(received.item, received.collectMs).then(async (answer) => {
      await time.sleep(SITE_LATENCY_MS);
      if (isGone() || this.#process() !== running) return never<KubeAnswer>();
      const mark = markOf(answer);
      if (mark !== undefined) onMark(mark, name);
      return answered(answer);
    });
    const answer = await Promise.race([limit, relayed]);
    return isGone() ? never() : answer;
  }

  /** The process that runs now; undefined: none. */
  #process(): RunningRelay | undefined {
    const { plan, time } = this.#options;
    const severity = plan.severity('relayDown');
    const turn = Math.floor(time.nowMs() / CRASH_LOOP_MS);
    const isDown = severity > 0 && (severity >= CRASH_LOOP_BELOW || turn % 2 === 0);
    if (isDown) plan.count('relayDown');
    const host = this.#host();
    if (isDown || host === undefined || !host.machine.isOn) {
      this.#running = undefined;
      return undefined;
    }
    const key = `${host.name} ${host.machine.sinceMs} ${plan.last('relayDown')?.fromMs} ${severity > 0 && turn}`;
    if (this.#running?.key !== key) this.#running = { key, relay: this.#newRelay(key, host.name) };
    return this.#running;
  }

  #host(): { readonly name: string; readonly machine: TrueMachine } | undefined {
    for (const [name, machine] of this.#options.machines()) {
      if (machine.zone === this.#zone && machine.instance !== 'ended' && !this.#usesRelay(name))
        return { name, machine };
    }
    return undefined;
  }

  #newRelay(key: string, host: string): HeartbeatRelay {
    const { time, send, doorOf } = this.#options;
    const isDead = (): boolean => this.#process()?.key !== key;
    const door = doorOf(host);
    const sendAs = (isGone: () => boolean): SendRequest =>
      throughDoors((request) => send(request, { zone: this.#zone, isGone }), door, host, time.nowMs);
    const [ownWay, heldWay] = [sendAs(isDead), sendAs(() => false)];
    return new HeartbeatRelay({
      api: kubeApi((request) => (isDead() ? never() : this.#sendBatch(host, request, { ownWay, heldWay }))),
      time: {
        nowMs: time.nowMs,
        monotonicMs: time.nowMs,
        uptimeMs: time.nowMs,
        sleep: (forMs, signal) => sleep(time, forMs, signal),
      },
      log: SILENT,
      meter: { count: noop },
    });
  }

  async #sendBatch(
    host: string,
    request: KubeRequest,
    { ownWay, heldWay }: { readonly ownWay: SendRequest; readonly heldWay: SendRequest },
  ): Promise<KubeAnswer> {
    const { time, plan } = this.#options;
    const limit = time.sleep(request.timeoutMs ?? TIMEOUT_MS).then(() => TIMED_OUT);
    const batch = endpointRequest(host, request);
    if (plan.severity('relayCut') > 0) {
      plan.count('relayCut');
      return limit;
    }
    if (plan.strikes('relayHolds', SHARES.held)) {
      // It left the relay, and arrives although the relay and its machines may have terminated.
      time.after(plan.fraction('relayHolds') ** 2 * HELD_MAX_MS, () => void this.#arriveLate(heldWay, batch));
      if (plan.fraction('relayHolds') >= REPEATED_SHARE) return limit;
    }
    const answer = ownWay(batch).then(answered);
    return plan.strikes('relayDrops', SHARES.lostAnswer) ? limit : Promise.race([limit, answer]);
  }

  async #arriveLate(send: SendRequest, batch: EndpointRequest): Promise<void> {
    const { body } = await send(batch);
    const { items = [] } = (body ?? {}) as { readonly items?: readonly LeaseBatchAnswerItem[] };
    for (const item of items) {
      const mark = markOf(item);
      if (mark !== undefined) this.#options.onMark(mark, '');
    }
  }
}

function markOf({ status }: LeaseBatchAnswerItem): RelayMark | undefined {
  if (status === 200) return 'stored';
  if (status === 409) return 'conflict';
  return status === 401 ? 'expired' : undefined;
}

/** What the route of a machine logs, as marks. */
const ROUTE_MARKS: readonly (readonly [beginning: string, RelayMark])[] = [
  ['the relay is used again', 'used-again'],
  ['the relay fails', 'failed'],
  ['the relay acknowledged', 'mistrusted'],
  ['the relay is not used', 'interval-short'],
];

function routeLog(node: string, onMark: SiteRelaysOptions['onMark']): Log {
  const mark = (message: string): void => {
    const found = ROUTE_MARKS.find(([beginning]) => message.startsWith(beginning));
    if (found !== undefined) onMark(found[1], node);
  };
  return { ...SILENT, info: mark, warn: mark };
}

const noop = (): void => undefined;
const SILENT: Log = { debug: noop, info: noop, warn: noop, error: noop };
const TIMED_OUT: KubeAnswer = { kind: 'failed', cause: new Error('no answer in time') };
const REFUSED: KubeAnswer = { kind: 'failed', cause: new Error('connection refused') };

const sleep = (time: VirtualTime, forMs: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    time.after(forMs, resolve);
    signal?.addEventListener('abort', () => resolve(), { once: true });
  });
