/** nodekeeper move: from one file of a cluster to another, also while it is served. */
import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { type ClusterAddress, clusterAddress } from '../../shared/agents/moved-cluster.ts';
import { systemClock } from '../../shared/aws/lambda/system-clock.ts';
import { optionValues } from '../../shared/host/command-line.ts';
import { ControlError } from '../../shared/host/control-socket.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { operateOn } from '../operations/commands.ts';
import { syncDirectory, syncFile } from '../store/open-database.ts';
import { openSqliteStore, type SqliteStore, StoreOpenError } from '../store/sqlite-store.ts';
import { lockStore } from '../store/store-lock.ts';
import { TABLES } from './copy-rows.ts';
import { abandonMove, type MoveDestination, MoveError, type MoveSource, moveCluster } from './move.ts';
import type { Fence } from './move-rows.ts';

export const MOVE_USAGE = `usage: nodekeeper move --from DIR|FILE --to DIR|FILE [options]

  --from DIR|FILE    data directory or database of the cluster, also while it is served
  --to DIR|FILE      a data directory or a database (*.db) that does not exist yet
  --endpoint URL     where the destination is served: agents follow. May be passed later
  --authority FILE   authorities of its certificate in PEM; \`system\`: those of each machine (that of the destination)
  --abandon          accepts writes at the source again, unless the destination was opened
  --help             this text

A move that was interrupted is continued by the same command.`;

const DATABASE = join('data', 'nodekeeper.db');
/** Keys and tokens of a data directory: machines and kubeconfigs trust them. */
const CREDENTIALS = ['ca.key', 'ca.pem', 'tokens.json', 'viewer-token'];
const PRIVATE = 0o700;

interface Place {
  /** As the user would name it, absolute. */
  readonly name: string;
  /** Absent: the place is a database alone. */
  readonly directory: string | undefined;
  readonly database: string;
}

export interface MoveIo {
  readonly print: (line: string) => void;
  /** After each durable step. */
  readonly onStep?: (step: string) => void;
}

/** @returns the exit code */
export async function moveCommand(args: readonly string[], io: MoveIo): Promise<number> {
  try {
    await move(args, io);
    return 0;
  } catch (error) {
    const isExpected = [MoveError, StartError, StoreOpenError, ControlError].some((kind) => error instanceof kind);
    if (!isExpected) throw error;
    io.print(`nodekeeper move: ${(error as Error).message}`);
    return 1;
  }
}

async function move(args: readonly string[], io: MoveIo): Promise<void> {
  const values = optionValues(args, {
    from: { type: 'string' },
    to: { type: 'string' },
    endpoint: { type: 'string' },
    authority: { type: 'string' },
    abandon: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help === true) {
    io.print(MOVE_USAGE);
    return;
  }
  if (values.from === undefined || values.to === undefined) throw new StartError('--from and --to are needed');
  const from = placeOf(values.from);
  const to = placeOf(values.to);
  if (!existsSync(from.database)) throw new StartError(`${from.database} does not exist`);
  if (from.database === to.database) throw new StartError('--from and --to are the same');
  const source = fileSource(from);
  if (values.abandon === true) {
    await abandon(source, to, existsSync(to.database));
    io.print(`${from.name} accepts writes again; ${to.name} can be deleted`);
    return;
  }
  const address = addressOf(values.endpoint, values.authority, from, to);
  const fence = await requireSource(source, to.name);
  if (address !== undefined && fence?.isReady === true && isServed(to)) {
    await source.setFence({ ...fence, address });
    io.print(announced(address));
    return;
  }
  const { items, close } = openDestination(to);
  try {
    const destination: MoveDestination = { name: to.name, items, placeCredentials: () => placeCredentials(from, to) };
    const { onStep } = io;
    const moved = await moveCluster({
      ...{ source, destination, moveId: randomUUID(), nowMs: systemClock.nowMs },
      ...(address && { address }),
      ...(onStep && { onStep }),
    });
    if (moved.sums !== undefined) {
      const counts = TABLES.map((table) => `${moved.sums![table].rows} rows of ${table}`).join(', ');
      io.print(`${to.name} has ${counts}, compared by their hashes`);
    }
    io.print(address ? announced(address) : nextLine(to));
  } finally {
    await close();
  }
}

const announced = ({ endpoint }: ClusterAddress): string => `agents and clients are sent to ${endpoint}`;

/** Only a destination that was complete is served: whoever opens one that is not ends with an error. */
function isServed({ database }: Place): boolean {
  if (!existsSync(`${database}.lock`)) return false;
  try {
    lockStore(database).release();
    return false;
  } catch (error) {
    if (error instanceof StoreOpenError && error.code === 'in-use') return true;
    throw error;
  }
}

const nextLine = ({ name, directory }: Place): string =>
  directory === undefined
    ? `start it, then run this again with --endpoint URL: agents follow`
    : `start it with nodekeeper serve --data ${name}, then run this again with --endpoint URL: agents follow`;

/** Nothing is made at the destination for a source that is moved elsewhere. */
async function requireSource(source: MoveSource, name: string): Promise<Fence | undefined> {
  const fence = await source.fence();
  if (fence === undefined || fence.to === name) return fence;
  throw new MoveError(`it is being moved to ${fence.to} already: finish that move, or end it with --abandon`);
}

async function abandon(source: MoveSource, to: Place, exists: boolean): Promise<void> {
  if (!exists) return abandonMove(source, undefined);
  const { items, close } = openDestination(to);
  try {
    await abandonMove(source, { name: to.name, items, placeCredentials: async () => {} });
  } finally {
    await close();
  }
}

function placeOf(path: string): Place {
  const name = resolve(path);
  const isFile = statSync(name, { throwIfNoEntry: false })?.isFile() ?? name.endsWith('.db');
  if (!isFile) return { name, directory: name, database: join(name, DATABASE) };
  const isOfDirectory = basename(dirname(name)) === dirname(DATABASE) && basename(name) === basename(DATABASE);
  return { name, directory: isOfDirectory ? dirname(dirname(name)) : undefined, database: name };
}

/** @throws StartError */
function addressOf(
  endpoint: string | undefined,
  authority: string | undefined,
  from: Place,
  to: Place,
): ClusterAddress | undefined {
  if (endpoint === undefined) {
    if (authority !== undefined) throw new StartError('--authority needs --endpoint');
    return undefined;
  }
  const own = (to.directory ?? from.directory) && join((to.directory ?? from.directory)!, 'ca.pem');
  const kept = own !== undefined && existsSync(own) ? own : from.directory && join(from.directory, 'ca.pem');
  const file = authority ?? kept ?? 'system';
  const pem = file === 'system' ? undefined : readPem(file);
  const address = clusterAddress(endpoint, pem);
  if (address === undefined) throw new StartError(`--endpoint must be an https URL, not ${endpoint}`);
  return address;
}

function readPem(file: string): string {
  try {
    const pem = readFileSync(file, 'utf8');
    if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem;
  } catch (cause) {
    throw new StartError(`--authority: ${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
  throw new StartError(`--authority: ${file} has no certificate in PEM`);
}

/** The process that serves it does what is asked, or this one, on the file. */
function fileSource({ database }: Place): MoveSource {
  const fenceIn = async (
    operation: { readonly verb: 'fence' } | { readonly verb: 'setFence'; readonly fence: Fence | undefined },
  ) => {
    const reply = await operateOn(database, operation);
    return reply.kind === 'fence' ? reply.fence : undefined;
  };
  return {
    fence: () => fenceIn({ verb: 'fence' }),
    async setFence(fence) {
      await fenceIn({ verb: 'setFence', fence });
    },
    async rows() {
      const copy = `${database}.moving`;
      removeDatabase(copy);
      const reply = await operateOn(database, { verb: 'backup', file: copy });
      const waiting = reply.kind === 'backedUp' ? reply.rows.pending : 0;
      const store = openSqliteStore({ file: copy, clock: systemClock, synchronous: 'normal' });
      return {
        items: store.items,
        waiting,
        async close() {
          await store.close();
          removeDatabase(copy);
        },
      };
    },
  };
}

function removeDatabase(file: string): void {
  for (const suffix of ['', '-wal', '-shm', '.lock', '.pid']) rmSync(`${file}${suffix}`, { force: true });
}

function openDestination({ database, directory }: Place): Pick<SqliteStore, 'items' | 'close'> {
  if (directory !== undefined) {
    for (const each of [directory, dirname(database)]) mkdirSync(each, { recursive: true, mode: PRIVATE });
  }
  return openSqliteStore({ file: database, clock: systemClock, synchronous: 'full' });
}

async function placeCredentials(from: Place, to: Place): Promise<void> {
  if (from.directory === undefined || to.directory === undefined) return;
  for (const name of CREDENTIALS) {
    const file = join(from.directory, name);
    if (!existsSync(file)) continue;
    const placed = join(to.directory, name);
    copyFileSync(file, placed);
    syncFile(placed);
    syncDirectory(placed);
  }
}
