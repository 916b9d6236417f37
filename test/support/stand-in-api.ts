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

export async function startStandInApi(nodeCount: number): Promise<StandInApi> {
  let version = 1;
  let lists = 0;
  let isRefusing = false;
  const statuses = Array.from({ length: nodeCount }, () => 'True');
  const open = new Set<ServerResponse>();
  /** Lines of changes; the first has version 2. */
  const changes: string[] = [];
  const nodeOf = (index: number) => standInNode(index, statuses[index]!, version);
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://api');
    const json = (body: unknown, status = 200): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (searchParams.has('watch')) {
      if (isRefusing) return json({ message: 'watches are refused' }, 503);
      response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
      if (pathname !== '/api/v1/nodes') return;
      for (const line of changes.slice(Number(searchParams.get('resourceVersion')) - 1)) response.write(line);
      open.add(response);
      response.once('close', () => open.delete(response));
    } else if (pathname === '/api/v1/nodes') {
      const first = Number(searchParams.get('continue') ?? 0);
      const end = Math.min(nodeCount, first + Number(searchParams.get('limit') ?? nodeCount));
      if (first === 0) lists += 1;
      const metadata = { resourceVersion: String(version), ...(end < nodeCount ? { continue: String(end) } : {}) };
      json({ metadata, items: Array.from({ length: end - first }, (_, offset) => nodeOf(first + offset)) });
    } else if (pathname.endsWith('/clusterstatuses/cluster')) {
      const lastTickTime = new Date().toISOString();
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

/** A Node as large as that of a kubelet: some 3 KB. */
function standInNode(index: number, ready: string, version: number) {
  const name = `edge-${String.fromCharCode(97 + (index % ZONES))}-${Math.floor(index / ZONES)}`;
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
