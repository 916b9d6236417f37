/** nodekeeper move: from one file of a cluster to another, also while it is served. */
import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { type ClusterAddress, clusterAddress } from '../../shared/agents/moved-cluster.ts';
import { systemClock } from '../../shared/clock.ts';
import { optionValues } from '../../shared/host/command-line.ts';
import { ControlError } from '../../shared/host/control-socket.ts';
import { makeDirectory } from '../../shared/host/directory.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { PRIVATE_DIRECTORY } from '../../shared/host/write-file.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import type { Fence } from '../../shared/store/move-rows.ts';
import { operateOn } from '../operations/commands.ts';
import { syncDirectory, syncFile } from '../store/open-database.ts';
import { openSqliteStore, StoreOpenError } from '../store/sqlite-store.ts';
import { lockStore, moveLockOf, type StoreLock } from '../store/store-lock.ts';
import type { StackName } from '../tables/deployed-tables.ts';
import { stackIn } from '../tables/stack-options.ts';
import { TABLES } from './copy-rows.ts';
import {
  abandonMove,
  changeFence,
  type MoveDestination,
  MoveError,
  type MoveSource,
  moveCluster,
  requireSameMove,
} from './move.ts';
import { openArrival } from './open-arrival.ts';

export const MOVE_USAGE = `usage: nodekeeper move --from DIR|FILE|aws --to DIR|FILE|aws [options]

  --from DIR|FILE    data directory or database of the cluster, also while it is served
  --to DIR|FILE      a data directory or a database (*.db) that does not exist yet
  --region REGION    of \`aws\` (AWS_REGION, else AWS_DEFAULT_REGION)
  --stack NAME       of \`aws\`: a deployed stack (Nodekeeper)
  --tables NAME      to \`aws\`: the beginning of the names of new tables (STACK-moved)
  --open             to \`aws\`: opens the new tables; deploy the stack with them afterwards
  --endpoint URL     where the destination is served: agents follow. May be passed later
  --authority FILE   authorities of its certificate in PEM; \`system\`: those of each machine (that of the destination)
  --abandon          accepts writes at the source again, unless the destination was opened
  --help             this text

A move that was interrupted is continued by the same command.`;

/** In place of a path. */
const AWS = 'aws';
const DATABASE = join('data', 'nodekeeper.db');
/** Keys and tokens of a data directory: machines and kubeconfigs trust them. */
const CREDENTIALS = ['ca.key', 'ca.pem', 'tokens.json', 'viewer-token'];

interface Place {
  /** The place as the user would name it, absolute. */
  readonly name: string;
  /** Absent: the place is a database alone. */
  readonly directory: string | undefined;
  readonly database: string;
}

export interface MoveIo {
  readonly print: (line: string) => void;
  readonly printError: (line: string) => void;
  /** After each durable step. */
  readonly onStep?: (step: string) => void;
}

/** @returns the exit code */
export async function moveCommand(args: readonly string[], io: MoveIo): Promise<number> {
  try {
    await move(args, io);
    return 0;
  } catch (error) {
    const isExpected = [MoveError, StartError, StoreOpenError, ControlError, StoreFault].some(
      (kind) => error instanceof kind,
    );
    if (!isExpected) throw error;
    io.printError(`nodekeeper move: ${(error as Error).message}`);
    return 1;
  }
}

async function move(args: readonly string[], io: MoveIo): Promise<void> {
  const values = optionValues(args, {
    from: { type: 'string' },
    to: { type: 'string' },
    endpoint: { type: 'string' },
    authority: { type: 'string' },
    region: { type: 'string' },
    stack: { type: 'string' },
    tables: { type: 'string' },
    open: { type: 'boolean' },
    abandon: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help === true) {
    io.print(MOVE_USAGE);
    return;
  }
  if (values.from === undefined || values.to === undefined) throw new StartError('--from and --to are needed');
  const isToAws = values.to === AWS;
  if (values.from === AWS && isToAws) throw new StartError('one of --from and --to must be a file');
  const named = values.from === AWS || isToAws ? { ...stackIn(values, AWS), clusterId: undefined } : undefined;
  requireFor(named !== undefined, { region: values.region, stack: values.stack }, '--from or --to aws');
  requireFor(isToAws, { tables: values.tables, open: values.open }, '--to aws');
  const from = values.from === AWS ? undefined : placeOf(values.from);
  const to = isToAws ? undefined : placeOf(values.to);
  if (from !== undefined && !existsSync(from.database)) throw new StartError(`${from.database} does not exist`);
  if (from?.database === to?.database) throw new StartError('--from and --to are the same');
  const prefix = values.tables ?? `${named?.stack}-moved`;
  const name = to?.name ?? `aws:${named?.region}/${named?.stack}/${prefix}`;
  const address = addressOf(values.endpoint, values.authority, from, to);
  const { source, clusterId, close } = from === undefined ? await openAwsSource(named!) : fileSource(from);
  try {
    const isThere = to === undefined || existsSync(to.database);
    if (values.abandon === true && !isThere) await abandonMove(source, undefined);
    else {
      const fence = await requireSource(source, name, values.abandon === true);
      if (to !== undefined && address !== undefined && fence?.isReady === true && isServed(to)) {
        await changeFence(source, { ...fence, address }, fence);
        io.print(announced(address));
        return;
      }
      const opened = to === undefined ? await openAwsDestination(named!, { name, prefix }) : fileDestination(from, to);
      try {
        if (values.abandon === true) await abandonMove(source, opened.destination);
        else await moveInto(source, opened, { address, isOpened: values.open === true, to, clusterId }, io);
      } finally {
        await opened.close();
      }
    }
    if (values.abandon === true) io.print(`${from?.name ?? values.from} accepts writes again; ${name} can be deleted`);
  } finally {
    close();
  }
}

interface Source {
  readonly source: MoveSource;
  readonly clusterId: string | undefined;
  close(): void;
}

interface Opened {
  readonly destination: MoveDestination;
  /** Endpoint and tables of a place on AWS. */
  readonly endpoint?: string;
  readonly restoredTables?: object;
  close(): unknown;
}

interface MoveWanted {
  readonly address: ClusterAddress | undefined;
  /** The destination is opened by this command. */
  readonly isOpened: boolean;
  readonly to: Place | undefined;
  /** Undefined: the user knows it. */
  readonly clusterId: string | undefined;
}

async function moveInto(
  source: MoveSource,
  { destination, endpoint, restoredTables }: Opened,
  { address, isOpened, to, clusterId }: MoveWanted,
  { print, onStep }: MoveIo,
): Promise<void> {
  const moved = await moveCluster({
    ...{ source, destination, moveId: randomUUID(), nowMs: systemClock.nowMs },
    ...(address && { address }),
    ...(onStep && { onStep }),
  });
  if (moved.sums !== undefined) {
    const counts = TABLES.map((table) => `${moved.sums![table].rows} rows of ${table}`).join(', ');
    print(`${destination.name} has ${counts}, compared by their hashes`);
  }
  if (restoredTables === undefined) {
    print(address ? announced(address) : nextLine(to!, clusterId));
    return;
  }
  if (!isOpened) {
    print('run this again with --open: the tables are the cluster from then on');
    return;
  }
  await openArrival({ items: destination.items, fence: () => undefined }, destination.name);
  const at = address ?? { endpoint: endpoint! };
  await moveCluster({ source, destination, moveId: randomUUID(), nowMs: systemClock.nowMs, address: at });
  print(`restoredTablesFile for npx cdk deploy:\n${JSON.stringify(restoredTables, undefined, 2)}`);
  print(announced(at));
}

/** The SDK of AWS is loaded when it is needed. */
async function openAwsSource(stack: StackName) {
  const { openAwsSource: open } = await import('./aws-place.ts');
  return open(stack, process.env);
}

async function openAwsDestination(stack: StackName, named: { readonly name: string; readonly prefix: string }) {
  const { openAwsDestination: open } = await import('./aws-place.ts');
  return open(stack, { ...named, environment: process.env });
}

/** @throws StartError for an option that makes no sense here */
function requireFor(isPossible: boolean, options: Readonly<Record<string, unknown>>, needed: string): void {
  const stray = Object.keys(options).find((name) => options[name] !== undefined);
  if (!isPossible && stray !== undefined) throw new StartError(`--${stray} needs ${needed}`);
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

function nextLine({ name, directory }: Place, clusterId: string | undefined): string {
  const serve = ['nodekeeper serve', ...(directory === undefined ? [] : ['--data', name])];
  if (clusterId !== undefined) serve.push('--cluster-id', clusterId);
  return `start it with ${serve.join(' ')}, then run this again with --endpoint URL: agents follow`;
}

/** Nothing is made at the destination for a source that is moved elsewhere. */
async function requireSource(source: MoveSource, name: string, isAbandoned: boolean): Promise<Fence | undefined> {
  const fence = await source.fence();
  if (fence === undefined && isAbandoned) throw new MoveError('it is not being moved');
  requireSameMove(fence, name);
  return fence;
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
  from: Place | undefined,
  to: Place | undefined,
): ClusterAddress | undefined {
  if (endpoint === undefined) {
    if (authority !== undefined) throw new StartError('--authority needs --endpoint');
    return undefined;
  }
  const own = [to?.directory, to && from?.directory].map((directory) => directory && join(directory, 'ca.pem'));
  const file = authority ?? own.find((each) => each !== undefined && existsSync(each)) ?? 'system';
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

/**
 * The process that serves it does what is asked, or this one, on the file. One command at a time:
 *
 * - Two would use the same copy of the database.
 * - A command that is slow would copy its rows into tables that the other one has opened. A destination in a file is
 *   locked as long as it is open; tables are not.
 *
 * @throws MoveError while another command runs
 */
function fileSource({ database }: Place): Source {
  const lock = lockCommand(database);
  const source: MoveSource = {
    async fence() {
      const reply = await operateOn(database, { verb: 'fence' });
      return reply.kind === 'fence' ? reply.fence : undefined;
    },
    async setFence(fence, expected) {
      const reply = await operateOn(database, { verb: 'setFence', fence, expected });
      return reply.kind === 'fenceSet' && reply.isSet;
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
  return { source, clusterId: undefined, close: () => lock.release() };
}

function lockCommand(database: string): StoreLock {
  try {
    return lockStore(moveLockOf(database));
  } catch (cause) {
    if (!(cause instanceof StoreOpenError && cause.code === 'in-use')) throw cause;
    const process = cause.pid === undefined ? 'another process' : `process ${cause.pid}`;
    throw new MoveError(`${process} moves ${database}: wait until it ends`, { cause });
  }
}

function removeDatabase(file: string): void {
  for (const suffix of ['', '-wal', '-shm', '.lock', '.pid']) rmSync(`${file}${suffix}`, { force: true });
}

function fileDestination(from: Place | undefined, to: Place): Opened {
  const { name, database, directory } = to;
  if (directory !== undefined) {
    makeDirectory(dirname(database), PRIVATE_DIRECTORY);
  }
  const { items, close } = openSqliteStore({ file: database, clock: systemClock, synchronous: 'full' });
  return { destination: { name, items, complete: () => placeCredentials(from, to) }, close };
}

/** The users of AWS are those of IAM: a directory that comes from there gets new tokens. */
async function placeCredentials(from: Place | undefined, to: Place): Promise<void> {
  if (from?.directory === undefined || to.directory === undefined) return;
  for (const name of CREDENTIALS) {
    const file = join(from.directory, name);
    if (!existsSync(file)) continue;
    const placed = join(to.directory, name);
    copyFileSync(file, placed);
    syncFile(placed);
    syncDirectory(placed);
  }
}
