import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { sendControl } from '../../shared/host/control-socket.ts';
import type { Fence } from '../../shared/store/move-rows.ts';
import { sqliteStoreForTest } from '../../test/support/sqlite-store.ts';
import { sendOperation, serveOperations } from './operations.ts';

const FENCE: Fence = { moveId: 'm', to: '/new', sinceMs: 7, isReady: false };

it('changes the fence of a running cluster in the expected state only', async () => {
  const { store, remove } = sqliteStoreForTest();
  const directory = mkdtempSync(join(tmpdir(), 'nk-operations-'));
  const socket = join(directory, 'serve.sock');
  const served = await serveOperations(socket, store);
  onTestFinished(async () => {
    await served.close();
    await remove();
    rmSync(directory, { recursive: true });
  });
  const setFence = async (fence: Fence | undefined, expected: Fence | undefined): Promise<unknown> => {
    const outcome = await sendOperation(socket, { verb: 'setFence', fence, expected });
    return outcome.kind === 'replied' ? outcome.reply : outcome;
  };
  expect(await setFence(FENCE, undefined)).toEqual({ kind: 'fenceSet', isSet: true });
  expect(await setFence(undefined, { ...FENCE, isReady: true })).toEqual({ kind: 'fenceSet', isSet: false });
  // A command of another release, or of none.
  for (const expected of ['m', null, { moveId: 'm' }]) {
    const outcome = await sendControl<object>(socket, { verb: 'setFence', expected });
    expect(outcome).toMatchObject({ reply: { kind: 'failed' } });
  }
  expect(store.fence()).toEqual(FENCE);
  expect(await setFence(undefined, FENCE)).toEqual({ kind: 'fenceSet', isSet: true });
  expect(store.fence()).toBeUndefined();
});
