/**
 * What an update of Services costs a machine: the rules of the agent, the bytes for nft, and the time of nft in a
 * network namespace of its own, where this machine can make one; and the bytes that the agent reads from the API, here
 * in memory.
 */
import { spawnSync } from 'node:child_process';
import { nftPacketFilter } from '../agent/adapters/services/nft.ts';
import { readServiceObjects, type ServiceObjects } from '../agent/app/services/read-service-objects.ts';
import type { KubeApi } from '../agent/ports/kube-api.ts';
import { balancedPorts } from '../agent/rules/services/load-balancing.ts';
import { type NftState, nftUpdate } from '../agent/rules/services/nft-table.ts';
import { serviceTable } from '../agent/rules/services/service-table.ts';
import type { KubeEndpointSlice, KubeService } from '../shared/kinds/types.ts';
import { type ApiAnswer, apiInMemory } from '../test/support/api-in-memory.ts';
import { type Benchmark, type Report, readOptions, rounded, wholeNumber } from './benchmark.ts';

const SERVICES_MAX = 5_000;
const ENDPOINTS_MAX = 200;

export const serviceRules: Benchmark = {
  name: 'service-rules',
  about: 'an update of the rules for Services on one machine: CPU of the agent, bytes and time of nft',
  usage: '[--services N] [--endpoints N]',
  smallest: ['--services', '10', '--endpoints', '3'],
  async run(report, options) {
    const read = readOptions(options, { services: { type: 'string' }, endpoints: { type: 'string' } });
    const services = wholeNumber('services', read.services, { least: 1, most: SERVICES_MAX, otherwise: 500 });
    const endpoints = wholeNumber('endpoints', read.endpoints, { least: 1, most: ENDPOINTS_MAX, otherwise: 20 });
    const objects = cluster(services, endpoints);
    const [first, ...others] = objects.slices;
    const oneLess = { ...objects, slices: [{ ...first!, endpoints: first!.endpoints!.slice(1) }, ...others] };
    const namespace = `nk${process.pid}bench`;
    const hasNamespace = spawnSync('ip', ['netns', 'add', namespace]).status === 0;
    try {
      let state: NftState | undefined;
      for (const [what, content] of [
        ['all rules', objects],
        ['one endpoint less', oneLess],
        ['nothing', oneLess],
      ] as const) {
        const cpu = process.cpuUsage();
        const ports = balancedPorts(content.services, content.slices, { nodeName: 'edge-1', podNetworks: [] });
        const update = nftUpdate(state, serviceTable('ip', ports));
        const { user, system } = process.cpuUsage(cpu);
        state = update.state;
        const startedMs = performance.now();
        const isRun = hasNamespace && update.commands.length > 0;
        if (isRun) await nftPacketFilter(['ip', 'netns', 'exec', namespace, 'nft']).apply(update.commands);
        report({
          services,
          endpoints,
          update: what,
          agentCpuMs: rounded((user + system) / 1_000, 3),
          commands: update.commands.length,
          sizeBytes: JSON.stringify(update.commands).length,
          nftMs: isRun ? rounded(performance.now() - startedMs, 3) : undefined,
        });
      }
    } finally {
      if (hasNamespace) spawnSync('ip', ['netns', 'delete', namespace]);
    }
    await measureReads((figures) => report({ services, endpoints, ...figures }), objects);
  },
};

const NAMESPACE = '/api/v1/namespaces/default';
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';

/** Answers to an agent, without compression: of everything, of a slice with another endpoint, and of nothing new. */
async function measureReads(report: Report, { services, slices }: ReturnType<typeof cluster>): Promise<void> {
  const api = apiInMemory();
  const ok = async (method: string, path: string, body: object): Promise<ApiAnswer> => {
    const answer = await api.send(method, path, { body });
    if (answer.code >= 300) throw new Error(`${method} ${path}: ${answer.code} ${answer.text.slice(0, 300)}`);
    return answer;
  };
  for (const { metadata, spec } of services) {
    await ok('POST', `${NAMESPACE}/services`, { metadata, spec: { ports: spec?.ports } });
  }
  for (const slice of slices) await ok('POST', SLICES, slice);
  let [requests, answeredBytes] = [0, 0];
  const agentApi: KubeApi = {
    async send({ method, path, body }) {
      const answer = await api.send(method, path, { ...(body !== undefined && { body }) });
      requests += 1;
      answeredBytes += answer.bytes.length;
      return { kind: 'answered', status: answer.code, body: answer.body as unknown };
    },
    reconnect() {},
  };
  let known: ServiceObjects | undefined;
  const read = async (what: string, more: { readonly sliceBytes?: number } = {}): Promise<void> => {
    [requests, answeredBytes] = [0, 0];
    const outcome = await readServiceObjects(agentApi, known);
    if (outcome.kind === 'failed') throw new Error(outcome.why);
    known = outcome.objects;
    report({ read: what, requests, answeredBytes, ...more });
  };
  await read('all objects');
  const [first] = slices;
  const { text } = await ok('PUT', `${SLICES}/${first!.metadata.name}`, {
    ...first,
    endpoints: first!.endpoints!.map((each, index) => ({ ...each, conditions: { ready: index > 0 } })),
  });
  await read('one endpoint changes', { sliceBytes: Buffer.byteLength(text) });
  await read('nothing');
}

function cluster(services: number, endpoints: number): { services: KubeService[]; slices: KubeEndpointSlice[] } {
  const numbers = Array.from({ length: services }, (_, index) => index);
  const addressOf = (high: number, low: number): string => `10.${high}.${low >> 8}.${low & 255}`;
  return {
    services: numbers.map((index) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'default', name: `service-${index}` },
      spec: { clusterIP: addressOf(96, index), ports: [{ port: 80 }] },
    })),
    slices: numbers.map((index) => ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        namespace: 'default',
        name: `service-${index}`,
        labels: { 'kubernetes.io/service-name': `service-${index}` },
      },
      addressType: 'IPv4',
      ports: [{ port: 8080 }],
      endpoints: Array.from({ length: endpoints }, (_, each) => ({
        addresses: [addressOf(1 + (index >> 8), ((index & 255) << 8) + each)],
        nodeName: `edge-${each + 2}`,
      })),
    })),
  };
}
