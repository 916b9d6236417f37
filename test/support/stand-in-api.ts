/** A stand-in for the API with any number of Nodes: lists in pages, and watches that a test feeds and cuts. */

import { createServer, type ServerResponse } from 'node:http';
import { listenOnLoopback } from '../../shared/host/loopback.ts';

export interface StandInApi {
  readonly url: string;
  /** Changes the Ready condition of a node, and sends the change to every watch. */
  setReady(index: number, status: 'True' | 'False' | 'Unknown'): void;
  /** Number of open watches. */
  watches(): number;
  /** How often Nodes were listed from the first page. */
  lists(): number;
  /** Cuts every watch, and refuses new ones until `restoreWatches`. */
  cutWatches(): void;
  restoreWatches(): void;
  stop(): Promise<void>;
}

const ZONES = 3;
const MINUTE_MS = 60_000;

export interface StandInOptions {
  readonly pods?: number;
  /** An answer in place of that of the stand-in. */
  readonly refuse?: (path: string) => { readonly status: number; readonly message: string } | undefined;
  /** By how much the clock of the API is ahead. */
  readonly clockAheadMs?: number;
  readonly nodeName?: (index: number) => string;
}

export async function startStandInApi(
  nodeCount: number,
  { pods = 0, refuse = () => undefined, clockAheadMs = 0, nodeName = standInName }: StandInOptions = {},
): Promise<StandInApi> {
  let version = 1;
  let lists = 0;
  let isRefusing = false;
  const statuses = Array.from({ length: nodeCount }, () => 'True');
  const open = new Set<ServerResponse>();
  /** Lines of changes; the first has version 2. */
  const changes: string[] = [];
  const nodeOf = (index: number) => standInNode(index, nodeName(index), statuses[index]!, version);
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://api');
    const json = (body: unknown, status = 200): void => {
      const date = new Date(Date.now() + clockAheadMs).toUTCString();
      response.writeHead(status, { 'content-type': 'application/json', date }).end(JSON.stringify(body));
    };
    const refusal = refuse(pathname);
    if (refusal !== undefined) return json({ kind: 'Status', message: refusal.message }, refusal.status);
    if (searchParams.has('watch')) {
      if (isRefusing) return json({ message: 'watches are refused' }, 503);
      response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
      if (pathname !== '/api/v1/nodes') return;
      for (const line of changes.slice(Number(searchParams.get('resourceVersion')) - 1)) response.write(line);
      open.add(response);
      response.once('close', () => open.delete(response));
    } else if (pathname === '/api/v1/nodes') {
      if (!searchParams.has('continue')) lists += 1;
      json(pageOf(nodeCount, nodeOf, searchParams, version));
    } else if (pathname === '/api/v1/pods' && !searchParams.has('fieldSelector')) {
      json(pageOf(pods, (index) => standInPod(index, nodeName(index % nodeCount)), searchParams, version));
    } else if (pathname.endsWith('/log')) {
      response.writeHead(200, { 'content-type': 'text/plain' }).write('the first line\n');
      response.end(`container ${searchParams.get('container')}\n`);
    } else if (/\/pods\/pod-\d+$/.test(pathname)) {
      const index = Number(pathname.split('-').at(-1));
      json(standInPod(index, nodeName(index % nodeCount)));
    } else if (pathname.endsWith('/clusterstatuses/cluster')) {
      const lastTickTime = new Date(Date.now() + clockAheadMs).toISOString();
      json({
        metadata: {},
        status: { lastTickTime, nodes: nodeCount, gate: { state: 'Open' }, totalDisruption: false },
      });
    } else if (pathname === '/metrics') {
      response.end('# EOF\n');
    } else if (pathname.endsWith('/selfsubjectrulesreviews')) {
      json({ status: { resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] } }, 201);
    } else {
      json({ metadata: {}, items: [] });
    }
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    setReady(index, status) {
      version += 1;
      statuses[index] = status;
      const line = `${JSON.stringify({ type: 'MODIFIED', object: nodeOf(index) })}\n`;
      changes.push(line);
      for (const response of open) response.write(line);
    },
    watches: () => open.size,
    lists: () => lists,
    cutWatches() {
      isRefusing = true;
      for (const response of open) response.destroy();
    },
    restoreWatches() {
      isRefusing = false;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** One page of a list. */
function pageOf(count: number, objectOf: (index: number) => object, query: URLSearchParams, version: number): object {
  const first = Number(query.get('continue') ?? 0);
  const end = Math.min(count, first + Number(query.get('limit') ?? count));
  return {
    metadata: { resourceVersion: String(version), ...(end < count ? { continue: String(end) } : {}) },
    items: Array.from({ length: end - first }, (_, offset) => objectOf(first + offset)),
  };
}

/** Each tenth pod restarts its container again and again. */
function standInPod(index: number, nodeName: string) {
  const isFailing = index % 10 === 0;
  const status = isFailing
    ? { ready: false, restartCount: 7, state: { waiting: { reason: 'CrashLoopBackOff' } } }
    : { ready: true, restartCount: 0, state: { running: { startedAt: '2026-01-01T00:00:00Z' } } };
  return {
    metadata: { name: `pod-${index}`, namespace: 'default', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      nodeName,
      containers: [{ name: 'main', image: 'i', resources: { requests: { cpu: '100m', memory: '64Mi' } } }],
    },
    status: { phase: 'Running', containerStatuses: [{ name: 'main', ...status }] },
  };
}

const standInName = (index: number): string =>
  `edge-${String.fromCharCode(97 + (index % ZONES))}-${Math.floor(index / ZONES)}`;

/** A Node as large as that of a kubelet: some 3 KB. */
function standInNode(index: number, name: string, ready: string, version: number) {
  const atMinute = new Date(Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS).toISOString();
  const condition = (type: string, status: string) => ({
    type,
    status,
    reason: `Kubelet${type}`,
    message: 'kubelet reports this condition with a message of usual length',
    lastHeartbeatTime: atMinute,
    lastTransitionTime: atMinute,
  });
  const resources = { cpu: '4', memory: '16Gi', pods: '110', 'ephemeral-storage': '100Gi' };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      uid: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
      resourceVersion: String(version),
      labels: {
        'kubernetes.io/hostname': name,
        'topology.kubernetes.io/region': 'eu-north-1',
        'topology.kubernetes.io/zone': `eu-north-1${String.fromCharCode(97 + (index % ZONES))}`,
        'node.kubernetes.io/instance-type': 'm7i.xlarge',
      },
      annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' },
      creationTimestamp: atMinute,
    },
    spec: { providerID: `aws:///eu-north-1a/i-${String(index).padStart(17, '0')}` },
    status: {
      capacity: resources,
      allocatable: resources,
      addresses: [{ type: 'InternalIP', address: `10.0.${index >> 8}.${index & 255}` }],
      conditions: ['MemoryPressure', 'DiskPressure', 'PIDPressure']
        .map((type) => condition(type, 'False'))
        .concat([condition('Ready', ready)]),
      nodeInfo: { kubeletVersion: 'v1.32.0', osImage: 'Debian GNU/Linux 12 (bookworm)', kernelVersion: '6.1.0' },
      images: Array.from({ length: 8 }, (_, image) => ({
        names: [`registry.example/team/image-${image}@sha256:${'0'.repeat(64)}`],
        sizeBytes: 100_000_000,
      })),
    },
  };
}
