/**
 * `nodekeeper serve --install` inside a booted systemd (boot.sh): it is installed, stands still, is backed up and
 * restored by root, replaced, and removed. Each step writes what it found to a file in RESULTS.
 *
 *   serve-story.ts - RESULTS
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { until } from '../support/until.ts';

const [, RESULTS = ''] = process.argv.slice(2);
const DATA = '/var/lib/nodekeeper-server';
const CLI = fileURLToPath(new URL('../../cli/bin/nodekeeper.ts', import.meta.url));
const soon = { withinMs: 60_000, everyMs: 200 };

interface Ended {
  readonly exitCode: number;
  readonly output: string;
}
const run = (command: string, ...args: readonly string[]): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(command, args, (error, stdout, stderr) =>
      resolve({ exitCode: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}`.trim() }),
    );
  });
const nodekeeper = (...args: readonly string[]): Promise<Ended> => run(process.execPath, CLI, ...args);
const record = (step: string, value: unknown): void =>
  writeFileSync(join(RESULTS, `${step}.json`), JSON.stringify(value, undefined, 2));
const unit = async (property: string): Promise<string> =>
  (await run('systemctl', 'show', '-P', property, 'nodekeeper.service')).output;

/** A request of root, with what the data directory has for programs of this machine. */
function ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: string }> {
  const { admin: adminToken } = JSON.parse(readFileSync(join(DATA, 'tokens.json'), 'utf8')) as { admin: string };
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
  const ca = readFileSync(join(DATA, 'ca.pem'), 'utf8');
  return new Promise((resolve, reject) => {
    const sent = request(`https://127.0.0.1:6443${path}`, { method, headers, ca, agent: false }, (answer) => {
      text(answer).then((received) => resolve({ status: answer.statusCode ?? 0, body: received }), reject);
    });
    sent.once('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}
const MAPS = '/api/v1/namespaces/default/configmaps';
const create = async (name: string): Promise<number> =>
  (await ask('POST', MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } })).status;
const exists = async (name: string): Promise<number> => (await ask('GET', `${MAPS}/${name}`)).status;

const DROP_INS = '/etc/systemd/system/nodekeeper.service.d';

async function install(): Promise<void> {
  mkdirSync(DROP_INS, { recursive: true });
  // The namespaces of boot.sh have no device nodes that systemd could copy.
  writeFileSync(join(DROP_INS, 'namespaces.conf'), '[Service]\nPrivateDevices=no\n');
  const first = await nodekeeper('serve', '--install');
  if (first.exitCode !== 0) throw new Error(first.output);
  record('installed', {
    output: first.output,
    again: await nodekeeper('serve', '--install'),
    active: await unit('ActiveState'),
    enabled: await unit('UnitFileState'),
    status: await unit('StatusText'),
    owner: statSync(join(DATA, 'data/nodekeeper.db')).uid,
    mode: statSync(DATA).mode & 0o777,
    ready: await ask('GET', '/readyz'),
    created: await create('kept'),
    security: (await run('systemd-analyze', 'security', '--no-pager', 'nodekeeper.service')).output.split('\n').at(-1),
  });
}

/** With a shorter watchdog, as an administrator changes it, for that one process. */
async function standStill(): Promise<void> {
  const short = join(DROP_INS, 'short.conf');
  writeFileSync(short, '[Service]\nWatchdogSec=3\nRestartSec=2\n');
  await run('systemctl', 'daemon-reload');
  await run('systemctl', 'restart', 'nodekeeper.service');
  await run('kill', '-STOP', await unit('MainPID'));
  await until(async () => (await unit('Result')) === 'watchdog', { ...soon, what: 'the end by the watchdog' });
  rmSync(short);
  await run('systemctl', 'daemon-reload');
  await until(async () => (await unit('ActiveState')) === 'active', { ...soon, what: 'a restart' });
  record('watchdog', { kept: await exists('kept') });
}

async function backUpAndRestore(): Promise<void> {
  const file = join(RESULTS, 'copy.db');
  const backup = await nodekeeper('backup', file, '--data', DATA);
  const after = await create('after');
  const refused = await nodekeeper('restore', file, '--data', DATA);
  await run('systemctl', 'stop', 'nodekeeper.service');
  const check = await nodekeeper('check', '--data', DATA);
  const restore = await nodekeeper('restore', file, '--data', DATA);
  const { exitCode } = await run('systemctl', 'start', 'nodekeeper.service');
  const found = { kept: await exists('kept'), after: await exists('after') };
  record('restored', { backup, after, refused: refused.exitCode, check, restore, started: exitCode, found });
}

async function installBadly(): Promise<void> {
  const other = createServer();
  await new Promise<void>((listening) => other.listen(0, '127.0.0.1', listening));
  const { port } = other.address() as AddressInfo;
  const before = readFileSync('/etc/systemd/system/nodekeeper.service', 'utf8');
  const bad = await nodekeeper('serve', '--install', '--port', String(port));
  other.close();
  const isSame = readFileSync('/etc/systemd/system/nodekeeper.service', 'utf8') === before;
  record('bad', { ...bad, isSame, active: await unit('ActiveState'), kept: await exists('kept') });
}

async function uninstall(): Promise<void> {
  const removed = await nodekeeper('serve', '--uninstall');
  record('removed', {
    removed,
    again: await nodekeeper('serve', '--uninstall'),
    unit: existsSync('/etc/systemd/system/nodekeeper.service'),
    load: await unit('LoadState'),
    data: existsSync(join(DATA, 'data/nodekeeper.db')),
  });
}

try {
  await install();
  await standStill();
  await backUpAndRestore();
  await installBadly();
  await uninstall();
} catch (error) {
  const journal = await run('journalctl', '--no-pager', '-u', 'nodekeeper', '-n', '60');
  writeFileSync(join(RESULTS, 'failed'), `${(error as Error).stack}\n${journal.output}`);
}
await run('systemctl', '--no-block', 'exit');
