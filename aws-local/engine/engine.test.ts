import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { StartError } from '../../shared/host/start-error.ts';
import { connectEngine, type Engine, engineBinary, startEngine } from './engine.ts';
import { createTables } from './tables.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));
const running: Engine[] = [];

async function anEngine(databaseFile?: string): Promise<Engine> {
  const engine = await startEngine(engineBinary(project), databaseFile);
  running.push(engine);
  return engine;
}

afterEach(async () => {
  for (const engine of running.splice(0)) await engine.stop();
});

const table = (keys: string[], stream = true) => ({
  tableName: 'Test-T',
  timeToLiveAttribute: 'ttl',
  definition: {
    TableName: 'Test-T',
    BillingMode: 'PAY_PER_REQUEST',
    KeySchema: keys.map((name, index) => ({ AttributeName: name, KeyType: index === 0 ? 'HASH' : 'RANGE' })),
    AttributeDefinitions: keys.map((name) => ({ AttributeName: name, AttributeType: 'S' })),
    ...(stream ? { StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' } } : {}),
  },
});

const alive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

describe('the engine', () => {
  it('answers once started, makes tables with their stream, and has ended when stopped', async () => {
    const engine = await anEngine();
    const streams = await createTables(engine.client, [table(['pk', 'sk'])]);
    expect(streams.get('Test-T')).toMatch(/^arn:/);
    await engine.stop();
    expect(alive(engine.pid!)).toBe(false);
  });

  it('keeps data in its file, and refuses kept tables of another shape', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'nodekeeper-engine-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'kept.sqlite');
    const first = await anEngine(file);
    const before = await createTables(first.client, [table(['pk', 'sk'])]);
    await first.stop();
    const second = await anEngine(file);
    expect(await createTables(second.client, [table(['pk', 'sk'])])).toEqual(before);
    await expect(createTables(second.client, [table(['pk'])])).rejects.toThrow(StartError);
    await expect(createTables(second.client, [table(['pk', 'sk'], false)])).rejects.toThrow(
      /other keys, indexes or stream/,
    );
  });

  it('says when it ended unasked', async () => {
    const engine = await anEngine();
    process.kill(engine.pid!, 'SIGKILL');
    expect(await engine.ended).toMatch(/SIGKILL/);
  });

  it('ends with the process that started it, however that ended', async () => {
    const script = `
      const { startEngine, engineBinary } = await import(${JSON.stringify(new URL('./engine.ts', import.meta.url).href)});
      const engine = await startEngine(engineBinary(${JSON.stringify(project)}), undefined);
      console.log(engine.pid);
      setInterval(() => {}, 1000);`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [chunk] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = Number(chunk.toString());
    expect(alive(pid)).toBe(true);
    parent.kill('SIGKILL');
    await expect.poll(() => alive(pid), { timeout: 5_000 }).toBe(false);
  });

  it('names what to do when no engine answers', async () => {
    await expect(connectEngine('http://127.0.0.1:9')).rejects.toThrow(/127\.0\.0\.1:9.*DYNAMODB_ENDPOINT/);
  });

  it('names what to do when the binary is not installed', () => {
    expect(() => engineBinary(tmpdir())).toThrow(/not installed: run npm install/);
  });
});
