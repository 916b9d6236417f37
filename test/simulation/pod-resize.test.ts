import { expect, it } from 'vitest';
import { startedStatus } from '../../agent/rules/started-pod.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { ClusterView } from '../../simulation/cluster-view.ts';
import type { EndpointRequest } from '../../simulation/endpoint.ts';
import { createMachine } from '../../simulation/machine.ts';

const NOW_MS = 1_700_000_000_000;
const spec = {
  name: 'n',
  labels: {},
  taints: [],
  podCount: 0,
  hasInstance: false,
  beating: true,
  ageMs: 0,
  clockOffsetMs: 0,
  beatEveryMs: 10_000,
  phaseMs: 0,
};

it('applies the resize of a pod in its next slot', async () => {
  const podWith = (cpu: string, status: KubePod['status'] = {}): KubePod => ({
    metadata: { name: 'p', namespace: 'default', uid: 'u', generation: 2 },
    spec: { nodeName: 'n', containers: [{ name: 'main', image: 'i', resources: { requests: { cpu } } }] },
    status,
  });
  const pod = podWith('2', startedStatus(podWith('1'), NOW_MS, undefined) as KubePod['status']);
  const sent: EndpointRequest[] = [];
  const endpoint = {
    failShare: 0,
    async send(request: EndpointRequest) {
      sent.push(request);
      return { status: 200, body: {} };
    },
  };
  const view: Pick<ClusterView, 'nodes' | 'podsOf'> = { nodes: new Map(), podsOf: () => [pod] };
  await createMachine(spec, endpoint, view as ClusterView).act(NOW_MS);
  const reports = sent.filter(({ path }) => path === '/api/v1/namespaces/default/pods/p/status');
  expect(reports).toMatchObject([
    { body: { status: { containerStatuses: [{ restartCount: 0, resources: { requests: { cpu: '2' } } }] } } },
  ]);
});
