import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CommandError } from './command.ts';
import { changeKubeconfigFile, type KubeconfigEntry, mergedKubeconfig } from './merge-kubeconfig.ts';

const entry: KubeconfigEntry = {
  name: 'edge',
  contextName: 'edge',
  server: 'https://edge.example',
  exec: { command: 'node', args: ['/opt/nodekeeper.mjs', 'token', '--cluster-id', 'edge'] },
};

const OTHERS = `# Mine; do not change.
apiVersion: v1
kind: Config
preferences: {}
current-context: work
clusters:
  - name: work # the old one
    cluster: { server: 'https://work.example', insecure-skip-tls-verify: true }
contexts:
  - name: work
    context: { cluster: work, user: me, namespace: web }
users:
  - name: me
    user: { token: abc }
extensions:
  - name: tool
    extension: { kept: true }
`;

describe('merging into a kubeconfig', () => {
  it('creates one where none exists', () => {
    expect(parse(mergedKubeconfig('', entry))).toEqual({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'edge', cluster: { server: 'https://edge.example' } }],
      users: [
        {
          name: 'edge',
          user: {
            exec: {
              apiVersion: 'client.authentication.k8s.io/v1',
              command: 'node',
              args: ['/opt/nodekeeper.mjs', 'token', '--cluster-id', 'edge'],
              interactiveMode: 'Never',
              provideClusterInfo: false,
              installHint: expect.stringContaining('nodekeeper kubeconfig'),
            },
          },
        },
      ],
      contexts: [{ name: 'edge', context: { cluster: 'edge', user: 'edge' } }],
      'current-context': 'edge',
    });
  });

  it('keeps everything else, comments and unknown fields included, and changes the current context', () => {
    const merged = mergedKubeconfig(OTHERS, entry);
    const before = parse(OTHERS) as Record<string, unknown[]>;
    const after = parse(merged) as Record<string, unknown[]>;
    for (const list of ['clusters', 'contexts', 'users'] as const) {
      expect(after[list]).toHaveLength(2);
      expect(after[list]?.[0]).toEqual(before[list]?.[0]);
    }
    expect(after['extensions']).toEqual(before['extensions']);
    expect(after['current-context']).toBe('edge');
    expect(merged).toContain('# Mine; do not change.');
    expect(merged).toContain('# the old one');
  });

  it('is the same the second time, and replaces changed entries', () => {
    const once = mergedKubeconfig(OTHERS, entry);
    expect(mergedKubeconfig(once, entry)).toBe(once);
    const moved = parse(mergedKubeconfig(once, { ...entry, server: 'https://nodes.example' })) as {
      clusters: { name: string; cluster: { server: string } }[];
    };
    expect(moved.clusters.map(({ name, cluster }) => [name, cluster.server])).toEqual([
      ['work', 'https://work.example'],
      ['edge', 'https://nodes.example'],
    ]);
  });

  it('adds a second name of the same cluster by an alias', () => {
    const merged = parse(mergedKubeconfig(mergedKubeconfig('', entry), { ...entry, contextName: 'e' })) as {
      contexts: { name: string }[];
      clusters: unknown[];
    };
    expect(merged.contexts.map(({ name }) => name)).toEqual(['edge', 'e']);
    expect(merged.clusters).toHaveLength(1);
  });

  it('reads the empty file that kubectl leaves, and JSON', () => {
    const empty = 'apiVersion: v1\nclusters: null\ncontexts: null\ncurrent-context: ""\nkind: Config\nusers: []\n';
    expect(parse(mergedKubeconfig(empty, entry))).toMatchObject({ users: [{ name: 'edge' }], clusters: [{}] });
    expect(parse(mergedKubeconfig(JSON.stringify(parse(OTHERS)), entry))).toMatchObject({ clusters: [{}, {}] });
  });

  it.each([
    ['a list', '- a'],
    ['broken YAML', 'clusters: [a'],
    ['another kind', 'kind: Pod'],
    ['clusters that are no list', 'clusters: { a: b }'],
  ])('refuses %s', (_, text) => {
    expect(() => mergedKubeconfig(text, entry)).toThrow(CommandError);
  });
});

describe('the file', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'nk-merge-'));
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  it('is created with its folder, for its owner only, and leaves no other file', () => {
    const path = join(dir, '.kube', 'config');
    changeKubeconfigFile(path, () => 'new');
    expect(readFileSync(path, 'utf8')).toBe('new');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(dir, '.kube'))).toEqual(['config']);
  });

  it('is changed at the target of a symbolic link', () => {
    const target = join(dir, 'real');
    writeFileSync(target, 'old');
    symlinkSync(target, join(dir, 'config'));
    changeKubeconfigFile(join(dir, 'config'), (text) => `${text}+new`);
    expect(readFileSync(target, 'utf8')).toBe('old+new');
  });

  it('is unchanged when the change fails', () => {
    const path = join(dir, 'config');
    writeFileSync(path, 'old');
    const refuse = () => {
      throw new CommandError('no', '');
    };
    expect(() => changeKubeconfigFile(path, refuse)).toThrow('no');
    expect(readdirSync(dir)).toEqual(['config']);
    expect(readFileSync(path, 'utf8')).toBe('old');
  });

  it('is not changed while kubectl holds its lock, and the error names the lock', () => {
    const path = join(dir, 'config');
    writeFileSync(`${path}.lock`, '');
    expect(() => changeKubeconfigFile(path, () => 'new')).toThrow('config.lock exists');
    expect(existsSync(path)).toBe(false);
  });

  it('that cannot be written is reported with its name', () => {
    expect(() => changeKubeconfigFile('/proc/kubeconfig', () => 'new')).toThrow('/proc/kubeconfig cannot be changed');
  });
});
