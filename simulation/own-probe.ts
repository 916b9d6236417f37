import type { Probe } from '../functions/node-monitor/probes.ts';
import { PROBE_LEASE } from '../shared/access/probe-identity.ts';
import type { Clock } from '../shared/clock.ts';
import { PROBE } from './access.ts';
import type { EndpointRequest } from './endpoint.ts';
import type { Send } from './faults/faulty-network.ts';

/** The probe of node-monitor over the simulated network: a beat for a Lease that belongs to no node. */
export function ownProbe(
  send: Send,
  clock: Clock,
  sleep: (milliseconds: number) => Promise<void>,
  door: Pick<EndpointRequest, 'door'> = {},
): Probe {
  const collection = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
  const sender = { isGone: () => false };
  const ask = async (request: Omit<EndpointRequest, 'who'>): Promise<number> => {
    const patience = sleep(2_000).then(() => 0);
    return Promise.race([patience, send({ who: PROBE, ...request }, sender).then(({ status }) => status)]);
  };
  return {
    async beat() {
      const spec = { renewTime: new Date(clock.nowMs()).toISOString().replace('Z', '000Z') };
      const path = `${collection}/${PROBE_LEASE}`;
      const status = await ask({
        ...door,
        method: 'PATCH',
        path,
        body: { spec },
        contentType: 'application/merge-patch+json',
      });
      if (status === 200) return { kind: 'accepted' };
      if (status !== 404) return { kind: 'failed', reason: `answered ${status}` };
      const created = await ask({
        method: 'POST',
        path: collection,
        body: {
          apiVersion: 'coordination.k8s.io/v1',
          kind: 'Lease',
          metadata: { name: PROBE_LEASE, namespace: 'kube-node-lease' },
          spec: { holderIdentity: PROBE_LEASE, leaseDurationSeconds: 40, ...spec },
        },
      });
      return created === 201 || created === 409
        ? { kind: 'accepted' }
        : { kind: 'failed', reason: `creating the probe's lease answered ${created}` };
    },
  };
}
