/**
 * What happens inside a booted systemd (boot.sh) to the Debian package of the agent: installed, set up, updated to
 * another version, removed and purged. Each step writes what it found to a file in RESULTS.
 *
 *   deb-story.ts PACKAGES RESULTS
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../support/until.ts';
import { nodeApi } from './node-api.ts';

const [PACKAGES = '', RESULTS = ''] = process.argv.slice(2);
const NODE = 'edge-1';
const WORK = '/tmp/story';
const soon = { withinMs: 60_000, everyMs: 200 };
const { certificates, conditionOf, nodeOf, serve } = nodeApi(NODE);

async function run(command: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(command, [...args]);
  return stdout.trim();
}
const record = (step: string, value: unknown): void =>
  writeFileSync(join(RESULTS, `${step}.json`), JSON.stringify(value, undefined, 2));
const active = (): Promise<string> => run('systemctl', 'show', '-P', 'ActiveState', 'nodekeeper-agent.service');
const versionOf = async () => (await nodeOf()).status?.nodeInfo?.['kubeletVersion'];
const packageFile = (version: string): string =>
  join(PACKAGES, readdirSync(PACKAGES).find((name) => name.includes(`_${version}_`)) ?? '');

/** What the package and its set-up may leave on the machine. */
const PLACES = [
  '/usr/lib/nodekeeper-agent',
  '/usr/bin/nodekeeper-agent',
  '/usr/bin/nodekeeper-agent-setup',
  '/usr/lib/systemd/system/nodekeeper-agent.service',
  '/usr/lib/systemd/system/nodekeeper-pods.service',
  '/usr/share/doc/nodekeeper-agent',
  '/usr/share/lintian/overrides/nodekeeper-agent',
  '/etc/nodekeeper',
  '/etc/systemd/system/nodekeeper-agent.service.d',
  '/etc/systemd/system/multi-user.target.wants/nodekeeper-agent.service',
  '/etc/systemd/logind.conf.d/99-kubelet.conf',
  '/run/nodekeeper',
  '/usr/local/lib/nodekeeper',
  '/usr/local/bin/nodekeeper-agent',
];
// The state is a mount of this test, and cannot be removed itself.
const left = (): string[] => [
  ...PLACES.filter((path) => existsSync(path)),
  ...(existsSync('/var/lib/nodekeeper') ? readdirSync('/var/lib/nodekeeper') : []),
];

async function install(endpoint: string): Promise<void> {
  writeFileSync(join(WORK, 'token'), 'node-token');
  writeFileSync(join(WORK, 'ca.pem'), certificates.join(''));
  // Its own Node.js runs it.
  renameSync('/usr/local/bin/node', '/usr/local/bin/node.away');
  await run('dpkg', '-i', packageFile('0.9.0'));
  const before = await active();
  await run(
    'nodekeeper-agent-setup',
    ...['--endpoint', endpoint, '--token-file', join(WORK, 'token'), '--certificate-authority', join(WORK, 'ca.pem')],
    ...['--node-name', NODE, '--runtime', 'exec'],
  );
  const ready = async () => conditionOf(await nodeOf(), 'Ready')?.status === 'True';
  await until(ready, { ...soon, what: 'a Ready node' });
  record('installed', {
    before,
    after: await active(),
    enabled: await run('systemctl', 'is-enabled', 'nodekeeper-agent.service'),
    version: await versionOf(),
    command: await run('nodekeeper-agent', '--version'),
    copies: existsSync('/usr/local/lib/nodekeeper'),
  });
}

async function update(): Promise<void> {
  await run('dpkg', '-i', packageFile('0.9.1'));
  await until(async () => (await versionOf())?.endsWith('.0.9.1'), { ...soon, what: 'the version of the Node' });
  record('updated', { active: await active(), enabled: await run('systemctl', 'is-enabled', 'nodekeeper-agent') });
}

async function remove(): Promise<void> {
  await run('dpkg', '--remove', 'nodekeeper-agent');
  record('removed', { left: left(), active: await active() });
  await run('dpkg', '--purge', 'nodekeeper-agent');
  record('purged', { left: left() });
}

mkdirSync(WORK, { recursive: true });
try {
  const server = await serve();
  await install(server.url);
  await update();
  await remove();
} catch (error) {
  const journal = await run('journalctl', '--no-pager', '-u', 'nodekeeper-agent', '-n', '60').catch(String);
  const { stderr = '', stack = '' } = error as { stderr?: string; stack?: string };
  writeFileSync(join(RESULTS, 'failed'), `${stack}\n${stderr}\n${journal}`);
}
await run('systemctl', '--no-block', 'exit');
