import { describe, expect, it } from 'vitest';
import type { KubePod, KubeSitePolicy } from '../types.ts';
import { withSiteHub } from './site-hub.ts';

const STOP = { 'nodekeeper.dev/offline-stop-after': '1h' };
const pod = (annotations: Record<string, string> = STOP): KubePod => ({
  metadata: { namespace: 'plant', name: 'p', annotations },
});
const policy = (name: string, hub: string, nodes: string[], namespaces: string[]): KubeSitePolicy => ({
  metadata: { name },
  spec: { hub, nodes, namespaces },
});
const hubOf = (bound: KubePod): string | undefined => bound.metadata.annotations?.['nodekeeper.dev/site-hub'];

describe('the hub of a pod that is bound', () => {
  const policies = [policy('b', 'hub-b', ['m1', 'm2'], ['plant']), policy('a', 'hub-a', ['m2'], ['plant', 'lab'])];

  it.each([
    ['is that of node and policy', 'm1', 'hub-b', 'hub-b'],
    ['is that which the machine obeys, of several policies', 'm2', 'hub-a', 'hub-a'],
    ['is none if the machine obeys another one', 'm1', 'hub-a', undefined],
    ['is none if the machine obeys none', 'm1', undefined, undefined],
    ['is none on a node that no policy names', 'm3', 'hub-a', undefined],
  ])('%s', (_, name, siteHub, hub) => {
    expect(hubOf(withSiteHub(pod(), { name, siteHub }, policies))).toBe(hub);
  });

  it('is none in another namespace, without a time to stop, and of a DaemonSet', () => {
    const node = { name: 'm1', siteHub: 'hub-b' };
    const { metadata } = pod();
    const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true };
    for (const other of [
      { metadata: { ...metadata, namespace: 'web' } },
      pod({}),
      { metadata: { ...metadata, ownerReferences: [owner] } },
    ])
      expect(hubOf(withSiteHub(other, node, policies))).toBeUndefined();
  });
});
