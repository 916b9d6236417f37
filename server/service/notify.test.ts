import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { until } from '../../test/support/until.ts';
import { serviceManager } from './notify.ts';

/** What systemd does with the socket: prints each message, and closes the descriptors that come with it. */
const RECEIVER = `
import os, socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print('bound', flush=True)
while True:
    message, descriptors, _, _ = socket.recv_fds(receiver, 4096, 4)
    for descriptor in descriptors: os.close(descriptor)
    print(message.decode().strip().replace('\\n', ' '), flush=True)
`;

async function receiver() {
  const directory = mkdtempSync(join(tmpdir(), 'nk-notify-'));
  const path = join(directory, 'notify');
  const child = spawn('/usr/bin/python3', ['-c', RECEIVER, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines: string[] = [];
  child.stdout.setEncoding('utf8').on('data', (text: string) => lines.push(...text.trim().split('\n')));
  onTestFinished(() => {
    child.kill('SIGKILL');
    rmSync(directory, { recursive: true });
  });
  const received = (line: string) =>
    until(() => lines.includes(line), { withinMs: 30_000, everyMs: 10, what: `${line} among ${lines.join(' | ')}` });
  await received('bound');
  return { path, lines, received };
}

const PATH = process.env['PATH'];

it('notifies the start, the watchdog with the status of the moment, and the end', async () => {
  const { path, lines, received } = await receiver();
  const faults: string[] = [];
  const environment = { PATH, NOTIFY_SOCKET: path, WATCHDOG_USEC: '150000', WATCHDOG_PID: String(process.pid) };
  const manager = serviceManager({ environment, pid: process.pid, onFault: (message) => faults.push(message) });
  let status = 'serves';
  await manager.ready(() => status);
  await received('READY=1 STATUS=serves');
  status = 'the disk is full';
  await received('WATCHDOG=1 STATUS=the disk is full');
  await manager.stopping();
  await received('STOPPING=1 STATUS=stopping');
  expect(lines.filter((line) => line.startsWith('READY=1'))).toHaveLength(1);
  expect(faults).toEqual([]);
});

it('is not watched when the watchdog is meant for another process', async () => {
  const { path, lines, received } = await receiver();
  const environment = { PATH, NOTIFY_SOCKET: path, WATCHDOG_USEC: '1000', WATCHDOG_PID: '1' };
  const manager = serviceManager({ environment, pid: process.pid, onFault: () => {} });
  await manager.ready(() => 'serves');
  await manager.stopping();
  await received('STOPPING=1 STATUS=stopping');
  expect(lines.filter((line) => line.startsWith('WATCHDOG'))).toEqual([]);
});

it('reports a message that could not be sent, and continues', async () => {
  const faults: string[] = [];
  const environment = { PATH: '/nowhere', NOTIFY_SOCKET: '/nowhere/notify' };
  await serviceManager({ environment, pid: 1, onFault: (message) => faults.push(message) }).ready(() => 'serves');
  expect(faults).toEqual([expect.stringContaining('systemd-notify failed')]);
});

it('starts nothing without a service manager', async () => {
  const faults: string[] = [];
  const environment = { PATH: '/nowhere', WATCHDOG_USEC: '1000' };
  const manager = serviceManager({ environment, pid: 1, onFault: (message) => faults.push(message) });
  await manager.ready(() => 'serves');
  await manager.stopping();
  expect(faults).toEqual([]);
});
