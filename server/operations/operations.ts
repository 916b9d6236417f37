/** Commands of this machine to the store of a running cluster, over the control socket of its data directory. */
import { isAbsolute } from 'node:path';
import { type Control, type ControlOutcome, sendControl, serveControl } from '../../shared/host/control-socket.ts';
import { type Fence, type FenceState, fenceItem, fenceOf } from '../../shared/store/move-rows.ts';
import type { FileCheck, RowCounts, SqliteStore } from '../store/sqlite-store.ts';

/** File name of the socket inside the data directory. */
export const OPERATIONS_SOCKET = 'serve.sock';
/** A check reads the whole file; 10 GB on an SD card need minutes. Milliseconds. */
const REPLY_MS = 1_800_000;

export type Operation =
  /** `file`: an absolute path. */
  | { readonly verb: 'backup'; readonly file: string }
  | { readonly verb: 'check' }
  | { readonly verb: 'fence' }
  /** `fence` undefined: lifts it. `expected`: the state of the present one; undefined: there is none. */
  | { readonly verb: 'setFence'; readonly fence: Fence | undefined; readonly expected: FenceState | undefined };

export type OperationReply =
  | { readonly kind: 'backedUp'; readonly rows: RowCounts }
  | { readonly kind: 'checked'; readonly check: FileCheck }
  | { readonly kind: 'fence'; readonly fence: Fence | undefined }
  | { readonly kind: 'fenceSet'; readonly isSet: boolean }
  | { readonly kind: 'failed'; readonly why: string };

export type StoreOperations = Pick<SqliteStore, 'backup' | 'check' | 'fence' | 'setFence'>;

/** @throws ControlError when another process answers there, or the path is too long */
export const serveOperations = (path: string, store: StoreOperations): Promise<Control> =>
  serveControl(path, (command) => operate(store, parsed(command)));

/** @throws ControlError for an answer that makes no sense */
export const sendOperation = (path: string, operation: Operation): Promise<ControlOutcome<OperationReply>> =>
  sendControl<OperationReply>(path, operation, REPLY_MS);

export async function operate(store: StoreOperations, operation: Operation | undefined): Promise<OperationReply> {
  if (operation === undefined)
    return { kind: 'failed', why: 'an operation is {"verb": "backup|check|fence|setFence", …}' };
  try {
    switch (operation.verb) {
      case 'backup':
        return { kind: 'backedUp', rows: await store.backup(operation.file) };
      case 'check':
        return { kind: 'checked', check: await store.check() };
      case 'setFence':
        return { kind: 'fenceSet', isSet: await store.setFence(operation.fence, operation.expected) };
      case 'fence':
        return { kind: 'fence', fence: store.fence() };
    }
  } catch (error) {
    return { kind: 'failed', why: error instanceof Error ? error.message : String(error) };
  }
}

function parsed(command: unknown): Operation | undefined {
  const { verb, file, fence, expected } = (command ?? {}) as {
    verb?: unknown;
    file?: unknown;
    fence?: Fence;
    expected?: unknown;
  };
  if (verb === 'check' || verb === 'fence') return { verb };
  if (verb === 'setFence' && isState(expected)) {
    return { verb, fence: fenceOf(fence && fenceItem(fence)), expected };
  }
  return verb === 'backup' && typeof file === 'string' && isAbsolute(file) ? { verb, file } : undefined;
}

/** A fence is never changed on a state that was not understood. */
function isState(value: unknown): value is FenceState | undefined {
  if (value === undefined) return true;
  const { moveId, isReady } = (value ?? {}) as { readonly moveId?: unknown; readonly isReady?: unknown };
  return typeof moveId === 'string' && typeof isReady === 'boolean';
}
