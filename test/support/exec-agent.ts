/** The pods of one node: the API in memory, the pod loop of the agent, and real processes with real volumes. */

import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { probeClient } from '../../agent/adapters/probe/probe-client.ts';
import { execRuntime } from '../../agent/adapters/runtime-exec/runtime-exec.ts';
import { staticPodFiles } from '../../agent/adapters/static-pods/static-pod-files.ts';
import { podVolumes } from '../../agent/adapters/volumes/pod-volumes.ts';
import { AnsweredHeartbeats } from '../../agent/app/answered-heartbeats.ts';
import { createPodLoop } from '../../agent/app/pod-loop.ts';
import { PodInputs, type PodInputsDependencies } from '../../agent/app/pods/pod-inputs.ts';
import { PodProbes } from '../../agent/app/pods/pod-probes.ts';
import { VolumeLimits } from '../../agent/app/pods/volume-limits.ts';
import type { KubeAnswer, KubeRequest } from '../../agent/ports/kube-api.ts';
import type { NodeEvent } from '../../agent/rules/node-event.ts';
import { clockReading } from '../../agent/rules/offline-stop.ts';
import { ADMITTED } from '../../agent/rules/pod-admission.ts';
import type { ContainerStatus, KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { recordsOf } from '../../shared/kubernetes/normal-form.ts';
import { silentLog, silentMeter } from './agent-api.ts';
import { type ApiInMemory, apiInMemory, NODES, node, podsIn } from './api-in-memory.ts';
import { memoryHeartbeatFile } from './memory-heartbeat-file.ts';
import { EDGE_1, sendAsEdge1 } from './node-api.ts';
import { scaledTime } from './scaled-time.ts';
import { until } from './until.ts';

const NAMESPACE = 'default';
/** The address of every pod: that of this machine. */
const HOST_IP = '127.0.0.1';
const SOON = { withinMs: 30_000, everyMs: 20 };

export interface ExecAgent {
  readonly server: ApiInMemory;
  /** `<pod>: <type> <reason> <message>` */
  readonly events: readonly string[];
  /** `<method> <path>` of all requests of the node. */
  readonly requests: readonly string[];
  readonly rootDirectory: string;
  /** Whether requests of the node fail. */
  isOffline: boolean;
  create(plural: 'configmaps' | 'secrets', name: string, more: Record<string, unknown>): Promise<void>;
  replace(plural: 'configmaps' | 'secrets', name: string, more: Record<string, unknown>): Promise<void>;
  /** Binds a pod to the node. */
  bind(name: string, spec: Record<string, unknown>, metadata?: Record<string, unknown>): Promise<KubePod>;
  deletePod(name: string, body?: Record<string, unknown>): Promise<void>;
  podOf(name: string): Promise<KubePod | undefined>;
  /** Output of the newest run of a container. */
  output(pod: KubePod, container?: string, run?: number): string;
  outputHas(pod: KubePod, text: string, container?: string): Promise<string>;
  eventSeen(text: string | RegExp): Promise<string>;
  statusHas(name: string, what: string, matches: (pod: KubePod) => boolean): Promise<KubePod>;
  /** A heartbeat that is sent now is answered. */
  beat(): void;
  /** Another agent process takes over: nothing is stopped. */
  restartAgent(): Promise<void>;
  close(): Promise<void>;
}

export const shell = (script: string) => ({ image: 'none', command: ['/bin/sh', '-c', script] });

export const statusOf = (pod: KubePod | undefined, container: string): ContainerStatus | undefined =>
  [...(pod?.status?.initContainerStatuses ?? []), ...(pod?.status?.containerStatuses ?? [])].find(
    ({ name }) => name === container,
  );

export const conditionOf = (pod: KubePod | undefined, type: string): string | undefined =>
  pod?.status?.conditions?.find((each) => each.type === type)?.status;

/** @param factor how much faster the time of the agent passes */
export async function execAgent(
  factor = 1,
  { resolverOf }: Pick<PodInputsDependencies, 'resolverOf'> = {},
): Promise<ExecAgent> {
  const server = apiInMemory({
    uuid: randomUUID,
    users: EDGE_1,
  });
  const rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-pods-'));
  const manifests = join(rootDirectory, 'manifests');
  mkdirSync(manifests);
  const events: string[] = [];
  const requests: string[] = [];
  const nodeUid = ((await server.send('POST', NODES, { body: node('edge-1') })).body as KubeObject).metadata.uid;
  await server.send('PATCH', `${NODES}/edge-1/status`, {
    contentType: 'application/merge-patch+json',
    body: { status: { allocatable: { cpu: '2', memory: '4Gi', pods: '30', 'ephemeral-storage': '10Gi' } } },
  });
  const time = scaledTime(factor);
  const file = memoryHeartbeatFile();
  const api = {
    async send(request: KubeRequest): Promise<KubeAnswer> {
      requests.push(`${request.method} ${request.path}`);
      if (self.isOffline) return { kind: 'failed', cause: new Error('no route to the API') };
      return sendAsEdge1(server, request);
    },
    reconnect() {},
  };

  function start() {
    const stop = new AbortController();
    const hostIp = () => HOST_IP;
    const runtime = execRuntime({ rootDirectory, time, log: silentLog, hostIp });
    const recordEvent = ({ metadata }: KubeObject, { type, reason, message }: NodeEvent) =>
      void events.push(`${metadata.name}: ${type} ${reason} ${message}`);
    const shared = { api, time, fraction: () => 0, log: silentLog, hostIp, recordEvent };
    const inputs = new PodInputs({
      ...shared,
      volumes: podVolumes({ rootDirectory, memoryDirectory: join(rootDirectory, 'memory') }),
      allocatable: () => ({ cpu: '2', memory: '4Gi' }),
      services: { KUBERNETES_SERVICE_HOST: 'api.example', KUBERNETES_SERVICE_PORT: '443' },
      resolverOf,
    });
    runtime.useInputs?.(inputs);
    runtime.onEvent?.(recordEvent);
    const heartbeats = new AnsweredHeartbeats({ time, log: silentLog, file });
    const loop = createPodLoop({
      ...shared,
      heartbeats,
      nodeName: 'edge-1',
      runtime,
      inputs,
      staticPods: staticPodFiles({ directory: manifests, nodeName: 'edge-1', log: silentLog, nowMs: time.nowMs }),
      nodeUid: () => nodeUid,
      probes: new PodProbes({ ...shared, runtime, probeClient: probeClient() }),
      meter: silentMeter,
      operatingSystem: 'linux',
      gate: () => ADMITTED,
      topology: { admit: () => ADMITTED, release() {} },
    });
    void heartbeats.read().then(() => loop.run(stop.signal));
    void inputs.run(stop.signal);
    const limits = new VolumeLimits({
      ...shared,
      inputs,
      activePods: () => loop.activePods(),
      killPod: (...args) => loop.killPod(...args),
    });
    void limits.run(stop.signal);
    return { runtime, loop, stop };
  }

  async function write(method: 'POST' | 'PUT', plural: string, name: string, more: Record<string, unknown>) {
    const path = `/api/v1/namespaces/${NAMESPACE}/${plural}`;
    const kind = plural === 'secrets' ? 'Secret' : 'ConfigMap';
    const body = { apiVersion: 'v1', kind, metadata: { name }, ...more };
    const { code, text } = await server.send(method, method === 'POST' ? path : `${path}/${name}`, { body });
    if (code >= 300) throw new Error(text);
  }

  const read: ExecAgent['podOf'] = async (name) => {
    const answer = await server.send('GET', `${podsIn(NAMESPACE)}/${name}`);
    return answer.code === 200 ? (answer.body as KubePod) : undefined;
  };
  const logFile = (pod: KubePod, file: string): string => join(rootDirectory, 'pods', pod.metadata.uid ?? '', file);

  let agent: ReturnType<typeof start>;
  const self: ExecAgent = {
    server,
    events,
    requests,
    rootDirectory,
    isOffline: false,
    create: (plural, name, more) => write('POST', plural, name, more),
    replace: (plural, name, more) => write('PUT', plural, name, more),
    async bind(name, spec, metadata = {}) {
      const { code, body, text } = await server.send('POST', podsIn(NAMESPACE), {
        body: {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name, ...metadata },
          spec: { nodeName: 'edge-1', restartPolicy: 'Never', terminationGracePeriodSeconds: 5, ...spec },
        },
      });
      if (code !== 201) throw new Error(text);
      agent.loop.podsChanged();
      return body as KubePod;
    },
    async deletePod(name, body = {}) {
      await server.send('DELETE', `${podsIn(NAMESPACE)}/${name}`, { body });
      agent.loop.podsChanged();
    },
    podOf: read,
    output(pod, container = 'main', run = 0) {
      const path = logFile(pod, `${container}.${run}.log`);
      return existsSync(path) ? readFileSync(path, 'utf8') : '';
    },
    outputHas: (pod, text, container) =>
      until(() => (self.output(pod, container).includes(text) ? self.output(pod, container) : undefined), {
        ...SOON,
        what: `output ${text} (events: ${events.join('; ')})`,
      }),
    eventSeen: (text) =>
      until(() => events.find((each) => (typeof text === 'string' ? each.includes(text) : text.test(each))), {
        ...SOON,
        what: `event ${text}`,
      }).catch((cause: unknown) => {
        throw new Error(`event ${text} is not among ${JSON.stringify(events)}`, { cause });
      }),
    statusHas: async (name, what, matches) => {
      let last: KubePod | undefined;
      return until(
        async () => {
          last = await read(name);
          return last !== undefined && matches(last) ? last : undefined;
        },
        { ...SOON, what },
      ).catch((cause: unknown) => {
        const conditions = recordsOf(last?.status?.conditions).map(({ type, status }) => `${type}=${status}`);
        throw new Error(`${what}: ${JSON.stringify({ ...last?.status, conditions })} ${events.join('; ')}`, { cause });
      });
    },
    beat: () => agent.loop.heartbeatAnswered(clockReading(time)),
    async restartAgent() {
      agent.stop.abort();
      await agent.loop.settled();
      await agent.runtime.close();
      agent = start();
    },
    async close() {
      agent.stop.abort();
      for (const { uid } of await agent.runtime.pods()) await agent.runtime.stop(uid, 0).catch(() => undefined);
      await agent.runtime.close();
      rmSync(rootDirectory, { recursive: true, force: true });
    },
  };
  agent = start();
  return self;
}
