/** The images of `nodekeeper serve` and of the agent, unpacked and run: not as root, with nothing of this machine. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { buildAgentProgram, packImage } from '../../scripts/release/image.ts';
import { readManifest } from '../../scripts/release/manifest.ts';
import { buildProgram } from '../../scripts/release/program.ts';
import { until } from '../support/until.ts';

const STEP_MS = 180_000;
const USER = 65_532;
const VERSION = '9.9.9';

/** Arguments: the folder of the image, and the words of the command. */
const READ_ONLY = `mount --bind "$0" "$0"
mount --bind "$0/data" "$0/data"
mount --bind /proc "$0/proc"
mount -o remount,bind,ro "$0"
exec /usr/sbin/chroot --userspec ${USER}:${USER} "$0" "$@"`;

function whyNot(): string | undefined {
  if (process.getuid?.() !== 0) return 'not root';
  for (const program of ['umoci', 'apt-get']) if (spawnSync(program, ['--version']).error) return `no ${program}`;
  return undefined;
}
const missing = whyNot();

describe.skipIf(missing !== undefined)(`the images${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  let work: string;
  const archives = new Map<string, string>();
  const rootOf = (name: string): string => join(work, name, 'bundle/rootfs');
  const configOf = (name: string) =>
    JSON.parse(readFileSync(join(work, name, 'bundle/config.json'), 'utf8')) as {
      process: { user: { uid: number; gid: number }; args: string[]; cwd: string; env: string[] };
    };

  beforeAll(async () => {
    work = mkdtempSync(join(tmpdir(), 'nodekeeper-image-'));
    const programs = { serve: join(work, 'program'), agent: join(work, 'agent-program') } as const;
    await buildProgram(programs.serve, readManifest());
    await buildAgentProgram(programs.agent, VERSION);
    const architecture = process.arch === 'arm64' ? 'arm64' : 'x64';
    for (const [contents, name] of [
      ['serve', 'nodekeeper'],
      ['agent', 'nodekeeper-agent'],
    ] as const) {
      const program = programs[contents];
      const archive = packImage({ work, out: work, version: VERSION, architecture, contents, program });
      archives.set(name, archive);
      const layout = join(work, name, 'layout');
      mkdirSync(layout, { recursive: true });
      execFileSync('tar', ['-xf', archive, '-C', layout]);
      execFileSync('umoci', ['unpack', '--image', `${layout}:${name}:${VERSION}`, join(work, name, 'bundle')], {
        stdio: 'pipe',
      });
      mkdirSync(join(rootOf(name), 'proc'), { recursive: true });
    }
  }, 3 * STEP_MS);
  afterAll(() => rmSync(work, { recursive: true, force: true }));

  /** Runs a command of an image as its user. Its files are read-only, but for /data. */
  const start = (name: string, words: readonly string[]): ChildProcess & { readonly ended: Promise<unknown> } => {
    const inMounts = ['--mount', '--propagation', 'private', '/bin/sh', '-ec', READ_ONLY, rootOf(name), ...words];
    const child = spawn('/usr/bin/unshare', inMounts, { env: {}, stdio: ['ignore', 'pipe', 'inherit'] });
    return Object.assign(child, { ended: new Promise((resolve) => child.once('exit', resolve)) });
  };

  it.each([
    ['nodekeeper', ['/opt/nodekeeper/bin/start.mjs', '--data', '/data'], 80_000_000],
    [
      'nodekeeper-agent',
      ['/opt/nodekeeper/nodekeeper-agent.mjs', '--config', '/etc/nodekeeper/agent.yaml', '--root-dir', '/data'],
      80_000_000,
    ],
  ])('%s has a user without rights, a folder for data, and no shell', (name, words, bytesMax) => {
    const { process: started } = configOf(name);
    expect(started).toMatchObject({ user: { uid: USER, gid: USER }, cwd: '/data' });
    expect(started.args[0]).toBe('/usr/bin/node');
    expect(started.args.slice(-words.length)).toEqual(words);
    expect(statSync(join(rootOf(name), 'data'))).toMatchObject({ uid: USER, gid: USER });
    expect(() => statSync(join(rootOf(name), 'bin/sh'))).toThrow(/ENOENT/);
    expect(statSync(archives.get(name)!).size).toBeLessThan(bytesMax);
  });

  it('serve a cluster, which the agent joins', { timeout: 2 * STEP_MS }, async () => {
    const root = rootOf('nodekeeper');
    const serve = ['/usr/bin/node', '/opt/nodekeeper/bin/start.mjs', '--data', '/data/cluster', '--port', '0'];
    const server = start('nodekeeper', serve);
    let agent: ReturnType<typeof start> | undefined;
    try {
      const greeting = await new Promise<string>((resolve) => server.stdout!.setEncoding('utf8').once('data', resolve));
      const url = /https:\S+(?= after)/.exec(greeting)?.[0] ?? '';
      const ca = readFileSync(join(root, 'data/cluster/ca.pem'), 'utf8');
      const status = await new Promise((resolve, reject) => {
        request(`${url}/readyz`, { ca }, (answer) => resolve(answer.resume().statusCode))
          .on('error', reject)
          .end();
      });
      expect(status).toBe(200);

      const nodekeeper = (...words: readonly string[]): string => {
        const command = [join(repositoryRoot, 'cli/bin/nodekeeper.ts'), ...words];
        const kubeconfig = ['--kubeconfig', join(root, 'data/cluster/kubeconfig')];
        return spawnSync(process.execPath, [...command, ...kubeconfig], { encoding: 'utf8' }).stdout.trim();
      };
      const settings = join(rootOf('nodekeeper-agent'), 'etc/nodekeeper');
      mkdirSync(settings);
      writeFileSync(join(settings, 'ca.pem'), ca);
      writeFileSync(join(settings, 'agent.yaml'), agentYaml(url, nodekeeper('bootstrap-token', 'create')));
      agent = start('nodekeeper-agent', configOf('nodekeeper-agent').process.args);
      await until(async () => nodekeeper('version', '--check').includes('in-a-container'), {
        withinMs: 90_000,
        everyMs: 1_000,
        what: 'the machine is a node of the cluster',
      });
      expect(statSync(join(rootOf('nodekeeper-agent'), 'data/node-key.pem')).uid).toBe(USER);
    } finally {
      for (const child of [agent, server]) {
        child?.kill('SIGTERM');
        await child?.ended;
      }
    }
  });
});

/** What a user mounts at /etc/nodekeeper. The machine of the test may have swap. */
const agentYaml = (url: string, token: string): string => `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
endpoint: "${url}"
certificateAuthorityFile: /etc/nodekeeper/ca.pem
bootstrapToken: "${token}"
runtime: none
hostnameOverride: in-a-container
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
healthzPort: 0
`;
