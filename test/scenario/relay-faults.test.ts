/**
 * A site with a relay that misbehaves, on virtual time: real lease loops, the real relay, the heartbeat function, the
 * API and the controllers. No machine that runs is ever marked, and a machine that stops is marked in time.
 */

import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { withHeartbeatDoor } from '../../agent/app/heartbeat-door.ts';
import { createLeaseLoop } from '../../agent/app/lease-loop.ts';
import { HeartbeatRelay } from '../../agent/app/relay.ts';
import { withRelay } from '../../agent/app/relay-route.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../../agent/ports/kube-api.ts';
import { relayedRequest } from '../../agent/rules/relay.ts';
import { serveHeartbeat } from '../../functions/heartbeat/work.ts';
import { staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import { isLeaseBatchPath, type LeaseBatchItem } from '../../shared/fleet/nodes/lease-batch.ts';
import type { HttpRequest, HttpResponse } from '../../shared/kubernetes/http.ts';
import { silentLog, timedOut } from '../support/agent-api.ts';
import { type ApiInMemory, apiInMemory } from '../support/api-in-memory.ts';
import { type ControlledFleet, controlledFleet, START_MS } from '../support/controlled-fleet.ts';
import { randomFrom } from '../support/seeded.ts';
import { SteppedTime } from '../support/stepped-time.ts';

const MACHINES = Array.from({ length: 10 }, (_, index) => `edge-${index}`);
const RELAY = MACHINES[0]!;
const TICK_SECONDS = 5;
/** Time of a request between a machine and the cluster. Milliseconds. */
const NETWORK_MS = 40;

/** What the relay does with a request, or with an answer. */
type Fault =
  | 'none'
  /** The process does not exist: connections are refused at once. */
  | 'dead'
  /** Requests are accepted and never answered. */
  | 'hangs'
  /** The same, and so does the next direct request of each machine that waited in vain. */
  | 'both hang'
  /** Batches are sent, and their answers are lost. */
  | 'drops answers'
  /** A share of the requests is lost. */
  | 'drops requests'
  /** Batches are held for longer than their machines wait, and then sent in another order. */
  | 'delays and reorders'
  /** It cannot reach the cluster. */
  | 'cut off'
  /** Each batch is sent twice. */
  | 'repeats'
  /** Answers to batches arrive late, shortly before the relay gives up. */
  | 'slow cluster'
  /** Answers to machines arrive late, shortly before they give up. */
  | 'slow site'
  /** Heartbeats are acknowledged and dropped. */
  | 'lies';

class Site {
  readonly time = new SteppedTime(START_MS);
  readonly fleet: ControlledFleet;
  readonly #leaseSeconds: number;
  readonly random = randomFrom(23);
  fault: Fault = 'none';
  relayedAnswers = 0;
  readonly #heartbeat: (request: HttpRequest) => Promise<HttpResponse>;
  readonly #api: ApiInMemory;
  readonly #stops = new Map<string, AbortController>();
  readonly #held: (() => Promise<unknown>)[] = [];
  /** Machines with a direct request that will hang. */
  readonly #hangsDirectly = new Set<string>();
  hungDirectly = 0;
  #relay: HeartbeatRelay;

  /** The times of the policy. The machines follow this interval. */
  constructor({ intervalSeconds, graceSeconds } = { intervalSeconds: 10, graceSeconds: 40 }) {
    this.#leaseSeconds = 4 * intervalSeconds;
    this.fleet = controlledFleet({
      policy: {
        beatIntervalSeconds: intervalSeconds,
        leaseDurationSeconds: this.#leaseSeconds,
        nodeMonitorGracePeriodSeconds: graceSeconds,
      },
    });
    const { time, fleet } = this;
    // A server's clock has whole milliseconds.
    const clock = { nowMs: () => Math.floor(time.nowMs()) };
    const users = MACHINES.map((name) => ({
      sha256: createHash('sha256').update(name).digest('hex'),
      user: `system:node:${name}`,
      groups: ['system:nodes'],
    }));
    this.#heartbeat = serveHeartbeat({
      items: fleet.tables,
      authenticator: staticTokenAuthenticator(users),
      clock,
      random: { uuid: () => 'u', fraction: this.random },
      log: silentLog,
    });
    this.#api = apiInMemory({
      items: fleet.tables,
      clock,
      users: Object.fromEntries(users.map(({ user, groups }, index) => [MACHINES[index]!, { name: user, groups }])),
    });
    this.#relay = this.#newRelay();
  }

  #newRelay(): HeartbeatRelay {
    const api: KubeApi = { send: (request) => this.#sendBatch(request), reconnect: () => {} };
    return new HeartbeatRelay({ api, time: this.time, log: silentLog, meter: { count: () => {} } });
  }

  /** The relay loses what it collected. */
  restart(): void {
    this.#relay = this.#newRelay();
  }

  async start(): Promise<void> {
    for (const name of MACHINES) {
      await this.fleet.register(name, { zone: 'z' });
      await this.fleet.post(name);
      this.resume(name);
    }
    await this.fleet.streams();
  }

  resume(nodeName: string): void {
    const stop = new AbortController();
    this.#stops.set(nodeName, stop);
    const { time } = this;
    const monotonicMs = () => time.monotonicMs();
    const api: KubeApi = { send: (request) => this.#directly(nodeName, request), reconnect: () => {} };
    const direct = withHeartbeatDoor({ api, open: () => api, monotonicMs });
    const relay: KubeApi = { send: (request) => this.#toRelay(nodeName, request), reconnect: () => {} };
    const loop = createLeaseLoop(
      { nodeName, nodeLeaseDurationSeconds: this.#leaseSeconds },
      {
        api: withRelay({ relay, direct, nodeName, monotonicMs, log: silentLog }),
        time,
        fraction: this.random,
        log: silentLog,
        stop: stop.signal,
        timeoutMs: 10_000,
        registerAgain: async () => false,
      },
    );
    void loop.run();
  }

  stop(nodeName: string): void {
    this.#stops.get(nodeName)?.abort();
  }

  /** Ticks for this long, and a change of the fault before each. Answers the nodes that were ever not Ready. */
  async run(seconds: number, beforeTick: () => void = () => {}): Promise<Set<string>> {
    const marked = new Set<string>();
    for (let passed = 0; passed < seconds; passed += TICK_SECONDS) {
      beforeTick();
      await this.time.pass(TICK_SECONDS * 1_000);
      this.fleet.at(this.time.monotonicMs() / 1_000);
      await this.fleet.tick();
      for (const name of MACHINES) if ((await this.fleet.ready(name)) !== 'True') marked.add(name);
    }
    return marked;
  }

  /** The longest time of a machine since its last stored heartbeat. */
  longestSilenceMs(): number {
    const received = this.fleet.tables.items('health').flatMap(({ r }) => (typeof r === 'number' ? [r] : []));
    return this.time.nowMs() - Math.min(...received);
  }

  /** A request of a machine to the cluster, within its time limit. */
  #directly(nodeName: string, request: KubeRequest): Promise<KubeAnswer> {
    if (!this.#hangsDirectly.delete(nodeName)) return this.#toCluster(nodeName, request);
    this.hungDirectly += 1;
    return this.time.sleep(request.timeoutMs ?? 10_000).then(() => timedOut);
  }

  async #toCluster(token: string, { method, path, body, contentType }: KubeRequest): Promise<KubeAnswer> {
    await this.time.sleep(NETWORK_MS);
    this.fleet.at(this.time.monotonicMs() / 1_000);
    const isBeat = (method === 'PUT' && path.includes('/kube-node-lease/leases/')) || isLeaseBatchPath(path);
    const headers = { authorization: `Bearer ${token}`, 'content-type': contentType ?? 'application/json' };
    if (!isBeat) {
      const { code, body: answered } = await this.#api.send(method, path, {
        ...(body === undefined ? {} : { body }),
        headers,
      });
      return { kind: 'answered', status: code, body: answered };
    }
    const { status, body: text } = await this.#heartbeat({
      method,
      path,
      query: new URLSearchParams(),
      headers: { ...headers, prefer: 'return=minimal' },
      body: Buffer.from(JSON.stringify(body)),
      sourceIp: '192.0.2.1',
    });
    await this.time.sleep(NETWORK_MS);
    return { kind: 'answered', status, body: JSON.parse(text as string) };
  }

  /** A request of a machine to the relay, within its time limit. */
  async #toRelay(
    token: string,
    { method, path, body, collectMs, timeoutMs = 10_000 }: KubeRequest,
  ): Promise<KubeAnswer> {
    if (this.fault === 'dead') return timedOut;
    const limit = this.time.sleep(timeoutMs).then(() => timedOut);
    if (this.fault === 'both hang') this.#hangsDirectly.add(token);
    const isLost =
      this.fault === 'hangs' || this.fault === 'both hang' || (this.fault === 'drops requests' && this.random() < 0.5);
    if (isLost) return limit;
    const received = relayedRequest({
      method,
      target: path,
      authorization: `Bearer ${token}`,
      collect: collectMs?.toString(),
      body: JSON.stringify(body),
    });
    if (received.kind === 'refused') throw new Error(JSON.stringify(received.answer));
    const sentAtMs = this.time.nowMs();
    const relayed = this.#relayed(received.item, received.collectMs);
    if (this.fault !== 'slow site') return Promise.race([limit, relayed]);
    const late = relayed.then((answer) =>
      this.time.sleep(sentAtMs + timeoutMs - 100 - this.time.nowMs()).then(() => answer),
    );
    return Promise.race([limit, late]);
  }

  async #relayed(item: LeaseBatchItem, collectMs: number): Promise<KubeAnswer> {
    if (this.fault === 'lies') {
      const metadata = { name: item.token, namespace: 'kube-node-lease', resourceVersion: '999' };
      return { kind: 'answered', status: 200, body: { kind: 'Lease', metadata } };
    }
    const { status, body } = await this.#relay.relay(item, collectMs);
    if (status === 200) this.relayedAnswers += 1;
    return { kind: 'answered', status, body };
  }

  async #sendBatch(request: KubeRequest): Promise<KubeAnswer> {
    const send = () => this.#toCluster(RELAY, request);
    const { timeoutMs = 10_000 } = request;
    switch (this.fault) {
      case 'cut off':
        return timedOut;
      case 'drops answers':
        await send();
        return timedOut;
      case 'repeats':
        await send();
        return send();
      case 'slow cluster': {
        const answer = await send();
        await this.time.sleep(timeoutMs - 300);
        return answer;
      }
      case 'delays and reorders':
        this.#held.push(send);
        if (this.#held.length > 2) for (const held of this.#held.splice(0).reverse()) await held();
        await this.time.sleep(timeoutMs);
        return timedOut;
      default:
        return send();
    }
  }
}

let site: Site;
beforeEach(async () => {
  site = new Site();
  await site.start();
});

describe('a site with a relay', () => {
  it('uses it', async () => {
    expect(await site.run(120)).toEqual(new Set());
    // Until the site is one batch, answers that are late cause direct heartbeats.
    expect(site.relayedAnswers).toBeGreaterThan(65);
  });

  it.each<Fault>([
    'dead',
    'hangs',
    'both hang',
    'drops answers',
    'drops requests',
    'delays and reorders',
    'cut off',
    'repeats',
    'slow cluster',
    'slow site',
  ])('has no node marked while the relay is like this: %s', async (fault) => {
    await site.run(60);
    site.fault = fault;
    expect(await site.run(300)).toEqual(new Set());
    site.fault = 'none';
    const before = site.relayedAnswers;
    expect(await site.run(120)).toEqual(new Set());
    // Its machines use it again.
    expect(site.relayedAnswers - before).toBeGreaterThan(40);
  });

  it('has no node marked when faults change every few seconds and the relay restarts', async () => {
    const faults: readonly Fault[] = [
      'none',
      'dead',
      'hangs',
      'both hang',
      'drops answers',
      'drops requests',
      'delays and reorders',
      'cut off',
      'repeats',
      'slow cluster',
      'slow site',
    ];
    const marked = await site.run(1_200, () => {
      if (site.random() < 0.4) site.fault = faults[Math.floor(site.random() * faults.length)]!;
      if (site.random() < 0.2) site.restart();
    });
    expect(marked).toEqual(new Set());
    expect(site.relayedAnswers).toBeGreaterThan(20);
  });

  it.each<Fault>(['none', 'repeats', 'delays and reorders'])(
    'marks a machine that stops, and no other, although the relay is like this: %s',
    async (fault) => {
      await site.run(60);
      site.fault = fault;
      await site.run(30);
      site.stop('edge-7');
      // The grace period, one period, and the time that a heartbeat was held.
      expect(await site.run(60)).toEqual(new Set(['edge-7']));
    },
  );

  it.each([
    { intervalSeconds: 2, graceSeconds: 10 },
    { intervalSeconds: 5, graceSeconds: 10 },
    { intervalSeconds: 8, graceSeconds: 16 },
    { intervalSeconds: 9, graceSeconds: 18 },
    { intervalSeconds: 10, graceSeconds: 23 },
    { intervalSeconds: 12, graceSeconds: 25 },
    { intervalSeconds: 20, graceSeconds: 40 },
  ])(
    'has no node marked with the shortest grace period of an interval, whatever the relay does: $intervalSeconds s',
    async (times) => {
      const strict = new Site(times);
      await strict.start();
      const faults: readonly Fault[] = [
        'none',
        'none',
        'hangs',
        'both hang',
        'slow cluster',
        'slow site',
        'drops answers',
      ];
      const marked = await strict.run(1_800, () => {
        if (strict.random() < 0.5) strict.fault = faults[Math.floor(strict.random() * faults.length)]!;
      });
      expect(marked).toEqual(new Set());
      // Policies have whole seconds.
      if (times.intervalSeconds < 10) expect(strict.relayedAnswers).toBe(0);
      else {
        expect(strict.relayedAnswers).toBeGreaterThan(100);
        expect(strict.hungDirectly).toBeGreaterThan(5);
      }
    },
  );

  it('avoids a relay that acknowledges what it dropped, once a direct heartbeat shows it', async () => {
    await site.run(60);
    site.fault = 'lies';
    // Machines believe it until their next direct heartbeat, and send directly for an hour from then on.
    await site.run(360);
    for (let minutes = 0; minutes < 10; minutes += 1) {
      expect(site.longestSilenceMs()).toBeLessThan(11_000);
      await site.run(60);
    }
  });
});
