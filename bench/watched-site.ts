/**
 * A site with machines that are witnesses of each other, on virtual time: the agent's own loops for heartbeats,
 * registration and status, its relay with the watch of the site, and its members. The benchmark provides the cluster.
 *
 * The first machine is the relay. A machine without power sends nothing more. What it sent before arrives.
 */
import { HeartbeatRelay } from '../agent/app/relay.ts';
import { withRelay } from '../agent/app/relay-route.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../agent/ports/kube-api.ts';
import type { AgentTime, Fraction } from '../agent/ports/time.ts';
import { relayedRequest } from '../agent/rules/relay.ts';
import { ZONE_LABEL } from '../shared/fleet/nodes/node-digest.ts';
import type { HttpRequest, HttpResponse } from '../shared/kubernetes/http.ts';
import { boundToken, headersOf } from '../simulation/access.ts';
import { answered, kubeApi } from '../simulation/kube-requests.ts';
import { never } from '../simulation/virtual-time.ts';
import { silentLog } from '../test/support/agent-api.ts';
import { MemorySite } from '../test/support/memory-site.ts';
import { type StormAgent, startAgent } from './storm-agent.ts';

/** One way to the cluster, at random in between. Milliseconds. */
const WAY_MS = [10, 40] as const;
/** One way inside the site. Milliseconds. */
const SITE_WAY_MS = 1;
const NO_ANSWER: KubeAnswer = { kind: 'failed', cause: new Error('no answer in time') };
const decoder = new TextDecoder();

export interface WatchedSiteOptions {
  readonly zone: string;
  /** The relay is added. */
  readonly machines: number;
  /** The cluster's answer to a request. */
  readonly serve: (request: HttpRequest) => Promise<HttpResponse>;
  readonly time: AgentTime;
  readonly fraction: Fraction;
}

export class WatchedSite {
  readonly #options: WatchedSiteOptions;
  readonly #site: MemorySite;
  readonly #relay: HeartbeatRelay;
  readonly #running = new Map<string, StormAgent>();
  readonly relayName: string;
  /** Machines that use the relay. */
  readonly members: readonly string[];

  constructor(options: WatchedSiteOptions) {
    const { zone, machines, time, fraction } = options;
    this.#options = options;
    this.relayName = `${zone}-relay`;
    this.members = Array.from({ length: machines - 1 }, (_, index) => `${zone}-${index}`);
    this.#site = new MemorySite(time, {
      hub: this.relayName,
      fraction,
      withhold: (name) => this.#relay.withhold(name),
    });
    const meter = { count: () => {} };
    this.#relay = new HeartbeatRelay({ api: this.#direct(this.relayName), time, log: silentLog, meter });
  }

  start(nodeName: string): void {
    const { zone, time, fraction } = this.#options;
    this.#site.restore(`${nodeName}>*`, `*>${nodeName}`);
    const direct = this.#direct(nodeName);
    const isRelay = nodeName === this.relayName;
    const { monotonicMs } = time;
    const relay = this.#throughRelay(nodeName);
    const api = isRelay ? direct : withRelay({ relay, direct, nodeName, monotonicMs, log: silentLog });
    if (!isRelay) this.#site.start(nodeName);
    const silence = this.#site.reportOf(nodeName);
    this.#running.set(nodeName, startAgent({ nodeName, labels: { [ZONE_LABEL]: zone }, api, time, fraction, silence }));
  }

  /** The machine loses its power. `start` starts it again. */
  async powerOff(nodeName: string): Promise<void> {
    this.#running.get(nodeName)?.stop();
    this.#running.delete(nodeName);
    await this.#site.crash(nodeName);
  }

  isOn(nodeName: string): boolean {
    return this.#running.has(nodeName);
  }

  #direct(nodeName: string): KubeApi {
    const { serve, time, fraction } = this.#options;
    const way = (): Promise<void> => time.sleep(WAY_MS[0] + (WAY_MS[1] - WAY_MS[0]) * fraction());
    const isGone = this.#goneSince(nodeName);
    return kubeApi(async (request) => {
      if (isGone()) return never();
      await way();
      const { status, body } = await serve(httpRequest(nodeName, request));
      await way();
      if (isGone()) return never();
      const text = typeof body === 'string' ? body : decoder.decode(body);
      return { kind: 'answered', status, body: text === '' ? undefined : JSON.parse(text) };
    });
  }

  #throughRelay(nodeName: string): KubeApi {
    const { time } = this.#options;
    const isGone = this.#goneSince(nodeName);
    return kubeApi(async (request) => {
      if (isGone()) return never();
      const { method, path: target, timeoutMs = Number.POSITIVE_INFINITY, signal } = request;
      const body = JSON.stringify(request.body);
      const authorization = `Bearer ${boundToken(nodeName, body, time.nowMs())}`;
      await time.sleep(SITE_WAY_MS);
      const collect = request.collectMs?.toString();
      const received = relayedRequest({ method, target, authorization, collect, body });
      if (received.kind === 'refused') return answered(received.answer);
      const limit = time.sleep(timeoutMs, signal).then(() => NO_ANSWER);
      const answer = await Promise.race([limit, this.#relay.relay(received.item, received.collectMs).then(answered)]);
      await time.sleep(SITE_WAY_MS);
      return isGone() ? never() : answer;
    });
  }

  /** Whether the process that runs after this call has ended. */
  #goneSince(nodeName: string): () => boolean {
    let process: StormAgent | undefined;
    return () => {
      const current = this.#running.get(nodeName);
      process ??= current;
      return process !== undefined && current !== process;
    };
  }
}

const httpRequest = (nodeName: string, { method, path, body, contentType }: KubeRequest): HttpRequest => {
  const url = new URL(path, 'https://endpoint.invalid');
  return {
    method,
    path: url.pathname,
    query: url.searchParams,
    headers: { ...headersOf(nodeName), 'content-type': contentType ?? 'application/json' },
    body: body === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(body)),
    sourceIp: '192.0.2.1',
  };
};
