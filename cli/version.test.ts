import { expect, it } from 'vitest';
import { type Agent, compareReleases, versionCommand } from './version.ts';

const cluster = 'v1.36.3-nodekeeper.1.4.2';
const agent = (release: string, node = `edge-${release}`): Agent => ({
  node,
  kubeletVersion: `v1.36.3-nodekeeper.${release}`,
});

it('supports a program one minor release away, and agents two behind', () => {
  expect(compareReleases('1.5.0', cluster, [agent('1.2.0'), agent('1.4.2')])).toEqual({
    lines: ['cluster    1.4.2', 'agents     1.2.0: edge-1.2.0', 'agents     1.4.2: edge-1.4.2'],
    isSupported: true,
  });
  expect(compareReleases('1.3.9', cluster, []).isSupported).toBe(true);
});

it.each(['1.6.0', '1.2.9', '2.4.2', '0.4.2'])('does not support program %s', (program) => {
  const { lines, isSupported } = compareReleases(program, cluster, []);
  expect(lines).toEqual([`cluster    1.4.2: more than one minor release from ${program}`]);
  expect(isSupported).toBe(false);
});

it.each([
  ['1.4.3', 'newer than the cluster; update the cluster first'],
  ['1.5.0', 'newer than the cluster; update the cluster first'],
  ['2.0.0', 'newer than the cluster; update the cluster first'],
  ['1.1.9', 'more than 2 minor releases older than the cluster'],
  ['0.4.2', 'more than 2 minor releases older than the cluster'],
])('names agents of %s', (release, remark) => {
  const { lines, isSupported } = compareReleases('1.4.0', cluster, [agent(release, 'edge-1')]);
  expect(lines.at(-1)).toBe(`agents     ${release}: edge-1: ${remark}`);
  expect(isSupported).toBe(false);
});

it('does not compare kubelets of others, and names five machines of a release', () => {
  const others = [{ node: 'k3s-1', kubeletVersion: 'v1.33.1+k3s1' }];
  const seven = Array.from({ length: 7 }, (_, index) => agent('1.4.2', `edge-${index}`));
  expect(compareReleases('1.4.0', cluster, [...others, ...seven]).lines).toEqual([
    'cluster    1.4.2',
    'agents     1.4.2: edge-0, edge-1, edge-2, edge-3, edge-4, and 2 more',
  ]);
});

it('says that another API is no cluster of ours', () => {
  expect(compareReleases('1.4.0', 'v1.36.3', [])).toEqual({
    lines: ['cluster    v1.36.3: this is not a cluster of Nodekeeper'],
    isSupported: false,
  });
});

it('reads every page of the nodes, and fails for releases that are not supported', async () => {
  const printed: string[] = [];
  const asked: string[] = [];
  const page = (name: string, after: string) => ({
    items: [{ metadata: { name }, status: { nodeInfo: { kubeletVersion: 'v1.36.3-nodekeeper.9.0.0' } } }],
    metadata: { continue: after },
  });
  const io = { environment: {}, nowMs: 0, print: (line: string) => printed.push(line) };
  const checked = versionCommand(
    ['--check', '--server', 'https://cluster', '--token', 't'],
    io,
    async (_, { path }) => {
      asked.push(path);
      if (path === '/version') return { gitVersion: 'v1.36.3-nodekeeper.0.1.0' };
      return path.includes('continue=') ? page('edge-2', '') : page('edge-1', 'more');
    },
  );
  await expect(checked).rejects.toThrow('these releases are not supported together');
  expect(asked).toEqual(['/version', '/api/v1/nodes?limit=500', '/api/v1/nodes?limit=500&continue=more']);
  expect(printed[0]).toMatch(/^nodekeeper \d+\.\d+\.\d+, Kubernetes API v1\.\d+\.\d+, Node\.js v\d/);
  expect(printed.at(-1)).toBe('agents     9.0.0: edge-1, edge-2: newer than the cluster; update the cluster first');
});
