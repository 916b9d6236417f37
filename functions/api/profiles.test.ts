import { describe, expect, it } from 'vitest';
import type { NodeProfile } from '../../shared/fleet/policy.ts';
import type { KubeNode, KubePod } from '../../shared/kinds/types.ts';
import { apiInMemory, MERGE, pod, podsIn } from '../../test/support/api-in-memory.ts';

const CELL: NodeProfile = {
  name: 'cell',
  nodeSelector: { matchExpressions: [{ key: 'link', operator: 'In', values: ['cell', 'satellite'] }] },
  podEvictionTimeoutSeconds: 900,
};
const ANNOTATION = 'nodekeeper.dev/profile';
const NODES = '/api/v1/nodes';

async function world(profiles: readonly NodeProfile[] = [CELL]) {
  const api = apiInMemory({ policy: { profiles } });
  const node = (name: string, metadata: object) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, ...metadata },
  });
  expect((await api.send('POST', NODES, { body: node('c', { labels: { link: 'cell' } }) })).code).toBe(201);
  expect((await api.send('POST', NODES, { body: node('w', { annotations: { [ANNOTATION]: 'cell' } }) })).code).toBe(
    201,
  );
  const profileOf = async (name: string) =>
    ((await api.send('GET', `${NODES}/${name}`)).body as KubeNode).metadata.annotations?.[ANNOTATION];
  const patch = (name: string, metadata: object) =>
    api.send('PATCH', `${NODES}/${name}`, { contentType: MERGE, body: { metadata } });
  return { api, profileOf, patch };
}

describe('the profile of a Node', () => {
  it('follows from its labels, at creation and with each change of them', async () => {
    const { profileOf, patch } = await world();
    expect(await profileOf('c')).toBe('cell');
    await patch('w', { labels: { link: 'satellite' } });
    expect(await profileOf('w')).toBe('cell');
    await patch('c', { labels: { link: 'wire' } });
    expect(await profileOf('c')).toBeUndefined();
  });

  it('cannot be set by a client', async () => {
    const { profileOf, patch } = await world();
    expect(await profileOf('w')).toBeUndefined();
    await patch('w', { annotations: { [ANNOTATION]: 'cell' } });
    expect(await profileOf('w')).toBeUndefined();
    await patch('c', { annotations: { [ANNOTATION]: null } });
    expect(await profileOf('c')).toBe('cell');
  });
});

describe('the default tolerations of a pod', () => {
  const bind = async (api: ReturnType<typeof apiInMemory>, name: string, nodeName: string, tolerations?: object[]) => {
    const spec = { containers: [{ name: 'c', image: 'i' }], ...(tolerations === undefined ? {} : { tolerations }) };
    await api.send('POST', podsIn('default'), { body: pod(name, { spec }) });
    const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target: { kind: 'Node', name: nodeName } };
    expect((await api.send('POST', `${podsIn('default')}/${name}/binding`, { body })).code).toBe(201);
    const bound = (await api.send('GET', `${podsIn('default')}/${name}`)).body as KubePod;
    return bound.spec?.tolerations?.map(({ tolerationSeconds }) => tolerationSeconds);
  };

  it('have the seconds of the profile of the node to which it is bound', async () => {
    const { api } = await world();
    expect(await bind(api, 'p', 'c')).toEqual([900, 900]);
    expect(await bind(api, 'q', 'w')).toEqual([300, 300]);
    expect(await bind(api, 'r', 'missing')).toEqual([300, 300]);
  });

  it('do not replace tolerations that the pod brings', async () => {
    const { api } = await world();
    const own = {
      key: 'node.kubernetes.io/unreachable',
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: 30,
    };
    expect(await bind(api, 'p', 'c', [own])).toEqual([30, 900]);
  });
});
