import { describe, expect, it } from 'vitest';
import { KUBERNETES_MINOR, KUBERNETES_VERSION } from '../../../shared/kinds/generated/version.ts';
import {
  aggregatedDiscoveryDocument,
  apiGroupDocument,
  apiGroupListDocument,
  apiResourceListDocument,
  apiVersionsDocument,
  discovered,
  versionDocument,
  wantsAggregatedDiscovery,
} from './discovery.ts';

interface Entry {
  name: string;
  kind: string;
  verbs: string[];
  shortNames?: string[];
  namespaced: boolean;
}
const built = discovered([]);

const entries = (group: string, version: string): Entry[] =>
  (apiResourceListDocument(built, group, version)?.['resources'] ?? []) as Entry[];

describe('discovery', () => {
  it('serves the minor version of the sources of its kinds', () => {
    expect(versionDocument({ version: '0.1.0' })).toMatchObject({
      major: '1',
      minor: KUBERNETES_MINOR,
      gitVersion: `${KUBERNETES_VERSION}-nodekeeper.0.1.0`,
    });
  });

  it('offers the core group at /api and the named ones at /apis', () => {
    expect(apiVersionsDocument(built, 'host:1')).toMatchObject({ kind: 'APIVersions', versions: ['v1'] });
    const groups = (apiGroupListDocument(built)['groups'] as { name: string }[]).map((group) => group.name);
    expect(groups).toEqual(
      expect.arrayContaining(['coordination.k8s.io', 'authorization.k8s.io', 'authentication.k8s.io', 'events.k8s.io']),
    );
    expect(groups).not.toContain('');
    expect(apiGroupDocument(built, 'coordination.k8s.io')).toMatchObject({
      kind: 'APIGroup',
      preferredVersion: { groupVersion: 'coordination.k8s.io/v1', version: 'v1' },
    });
    expect(apiGroupDocument(built, 'extensions')).toBeUndefined();
  });

  it('puts the preferred version of a group first', () => {
    expect(apiGroupDocument(built, 'policy')).toMatchObject({
      preferredVersion: { version: 'v1' },
      versions: [{ version: 'v1' }, { version: 'v1beta1' }],
    });
    expect(apiGroupDocument(built, 'autoscaling')).toMatchObject({
      preferredVersion: { version: 'v2' },
      versions: [{ version: 'v2' }, { version: 'v1' }],
    });
  });

  it('names the kind of a subresource of another group', () => {
    expect(entries('apps', 'v1').find((entry) => entry.name === 'deployments/scale')).toMatchObject({
      group: 'autoscaling',
      version: 'v1',
      kind: 'Scale',
    });
  });

  it('lists resources with their subresources, verbs and short names', () => {
    const nodes = entries('', 'v1').find((entry) => entry.name === 'nodes');
    expect(nodes).toMatchObject({ kind: 'Node', namespaced: false, shortNames: ['no'] });
    expect(nodes?.verbs).toEqual(['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']);
    expect(entries('', 'v1').map((entry) => entry.name)).toContain('nodes/status');
    expect(entries('coordination.k8s.io', 'v1').map((entry) => entry.name)).toEqual(['leases']);
    expect(entries('authorization.k8s.io', 'v1').map((entry) => entry.verbs)).toEqual(Array(4).fill(['create']));
    expect(apiResourceListDocument(built, 'extensions', 'v1beta1')).toBeUndefined();
  });

  it('answers in aggregated form to those who ask for it first', () => {
    const kubectl =
      'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json';
    expect(wantsAggregatedDiscovery(kubectl)).toBe('v2');
    expect(wantsAggregatedDiscovery('application/json')).toBeUndefined();
    expect(wantsAggregatedDiscovery('*/*')).toBeUndefined();
    const core = aggregatedDiscoveryDocument(built, 'core', 'v2');
    expect(core).toMatchObject({ kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2' });
    const [group] = core['items'] as { versions: { version: string; resources: { resource: string }[] }[] }[];
    expect(group?.versions[0]?.resources.find((each) => each.resource === 'nodes')).toMatchObject({
      responseKind: { group: '', version: 'v1', kind: 'Node' },
      scope: 'Cluster',
      singularResource: 'node',
      shortNames: ['no'],
      subresources: [{ subresource: 'status', responseKind: { group: '', version: 'v1', kind: 'Node' } }],
    });
    expect(aggregatedDiscoveryDocument(built, 'named', 'v2')['items']).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ metadata: { name: 'coordination.k8s.io', creationTimestamp: null } }),
      ]),
    );
  });
});
