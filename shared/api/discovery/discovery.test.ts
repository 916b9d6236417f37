import { describe, expect, it } from 'vitest';
import {
  aggregatedDiscoveryAnswer,
  apiGroupAnswer,
  apiGroupListAnswer,
  apiResourceListAnswer,
  apiVersionsAnswer,
  versionAnswer,
  wantsAggregatedDiscovery,
} from './discovery.ts';

interface Entry {
  name: string;
  kind: string;
  verbs: string[];
  shortNames?: string[];
  namespaced: boolean;
}
const entries = (group: string, version: string): Entry[] =>
  (apiResourceListAnswer(group, version)?.['resources'] ?? []) as Entry[];

describe('discovery', () => {
  it('steers kubectl to minor 32', () => {
    expect(versionAnswer({ version: '0.1.0' })).toMatchObject({
      major: '1',
      minor: '32',
      gitVersion: 'v1.32.0-nodekeeper.0.1.0',
    });
  });

  it('offers the core group at /api and the named ones at /apis', () => {
    expect(apiVersionsAnswer('host:1')).toMatchObject({ kind: 'APIVersions', versions: ['v1'] });
    const groups = (apiGroupListAnswer()['groups'] as { name: string }[]).map((group) => group.name);
    expect(groups).toEqual(
      expect.arrayContaining(['coordination.k8s.io', 'authorization.k8s.io', 'authentication.k8s.io', 'events.k8s.io']),
    );
    expect(groups).not.toContain('');
    expect(apiGroupAnswer('coordination.k8s.io')).toMatchObject({
      kind: 'APIGroup',
      preferredVersion: { groupVersion: 'coordination.k8s.io/v1', version: 'v1' },
    });
    expect(apiGroupAnswer('batch')).toBeUndefined();
  });

  it('lists resources with their subresources, verbs and short names', () => {
    const nodes = entries('', 'v1').find((entry) => entry.name === 'nodes');
    expect(nodes).toMatchObject({ kind: 'Node', namespaced: false, shortNames: ['no'] });
    expect(nodes?.verbs).toEqual(['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']);
    expect(entries('', 'v1').map((entry) => entry.name)).toContain('nodes/status');
    expect(entries('coordination.k8s.io', 'v1').map((entry) => entry.name)).toEqual(['leases']);
    expect(entries('authorization.k8s.io', 'v1').map((entry) => entry.verbs)).toEqual([['create'], ['create']]);
    expect(apiResourceListAnswer('batch', 'v1')).toBeUndefined();
  });

  it('answers in aggregated form to those who ask for it first', () => {
    const kubectl =
      'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json';
    expect(wantsAggregatedDiscovery(kubectl)).toBe('v2');
    expect(wantsAggregatedDiscovery('application/json')).toBeUndefined();
    expect(wantsAggregatedDiscovery('*/*')).toBeUndefined();
    const core = aggregatedDiscoveryAnswer('core', 'v2');
    expect(core).toMatchObject({ kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2' });
    const [group] = core['items'] as { versions: { version: string; resources: { resource: string }[] }[] }[];
    expect(group?.versions[0]?.resources.find((each) => each.resource === 'nodes')).toMatchObject({
      responseKind: { group: '', version: 'v1', kind: 'Node' },
      scope: 'Cluster',
      singularResource: 'node',
      shortNames: ['no'],
      subresources: [{ subresource: 'status', responseKind: { group: '', version: 'v1', kind: 'Node' } }],
    });
    expect(aggregatedDiscoveryAnswer('named', 'v2')['items']).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ metadata: { name: 'coordination.k8s.io', creationTimestamp: null } }),
      ]),
    );
  });
});
