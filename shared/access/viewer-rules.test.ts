import { expect, it } from 'vitest';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import { viewerRulesOf } from './viewer-rules.ts';

const kind = (group: string, resource: string, subresources: readonly object[] = []) =>
  ({ group, resource, subresources }) as unknown as ResourceDescriptor;

it('viewers read every kind by group, with what a get may read of it, and no Secrets', () => {
  const read = ['get', 'list', 'watch'];
  const rules = viewerRulesOf([
    kind('', 'pods', [
      { name: 'log', verbs: ['get'] },
      { name: 'binding', verbs: ['create'] },
    ]),
    kind('', 'secrets', [{ name: 'status', verbs: ['get'] }]),
    kind('apps', 'deployments', [{ name: 'scale', verbs: ['update', 'get'] }]),
    kind('', 'configmaps'),
    kind('example.com', 'secrets'),
  ]);
  expect(rules).toEqual([
    { verbs: read, apiGroups: [''], resources: ['configmaps', 'pods', 'pods/log'] },
    { verbs: read, apiGroups: ['apps'], resources: ['deployments', 'deployments/scale'] },
    { verbs: read, apiGroups: ['example.com'], resources: ['secrets'] },
  ]);
});
