import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { ENGINE_DATABASE, makeDatabaseFile, NO_DATABASE } from '../../aws-local/engine/database-file.ts';
import { openCredentials } from './credentials.ts';
import { openDataDirectory } from './data-directory.ts';
import { StartError } from './start-error.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
let parent: string;
let folder: string;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'nodekeeper-data-'));
  onTestFinished(() => rmSync(parent, { recursive: true }));
  folder = join(parent, 'kept');
});

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

/** A directory as a start makes it. */
async function aCluster(): Promise<string> {
  const data = openDataDirectory(folder, ENGINE_DATABASE);
  makeDatabaseFile(data.databaseFile);
  await openCredentials(data, NOW_MS);
  return data.databaseFile;
}

/** Every file below the directory, with its permissions and content. */
const contentOf = (path: string): unknown =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => [name, modeOf(join(parentPath, name)), readFileSync(join(parentPath, name), 'hex')]);

describe('the database file of a data directory', () => {
  const DAMAGES: readonly [string, (file: string) => void, RegExp][] = [
    ['of 0 bytes', (file) => writeFileSync(file, ''), /it has only 0 bytes/],
    ['that is missing', (file) => rmSync(file), /it does not exist, although .*ca\.key of its cluster does/],
    ['that is no database', (file) => writeFileSync(file, 'x'.repeat(8_192)), /it is not an SQLite database/],
    [
      'of another program',
      (file) => {
        rmSync(file);
        const database = new DatabaseSync(file);
        database.exec('CREATE TABLE photos (name TEXT)');
        database.close();
      },
      /the SQLite database of another program \(application id 0\)/,
    ],
  ];

  it.each(DAMAGES)('%s is refused, and nothing is changed', async (_, damage, expected) => {
    const file = await aCluster();
    damage(file);
    const before = contentOf(folder);
    expect(() => openDataDirectory(folder, ENGINE_DATABASE)).toThrow(StartError);
    expect(() => openDataDirectory(folder, ENGINE_DATABASE)).toThrow(expected);
    expect(() => openDataDirectory(folder, ENGINE_DATABASE)).toThrow(
      /nodekeeper\.sqlite.*Expected is.*Put the file back/,
    );
    expect(contentOf(folder)).toEqual(before);
  });

  it('is made before the credentials: an interrupted first start can be repeated', async () => {
    const data = openDataDirectory(folder, ENGINE_DATABASE);
    makeDatabaseFile(data.databaseFile);
    expect(existsSync(data.file('ca.key'))).toBe(false);
    await aCluster();
    expect(openDataDirectory(folder, ENGINE_DATABASE).databaseFile).toBe(data.databaseFile);
  });

  it('is not asked for when somebody else runs the engine', async () => {
    rmSync(await aCluster());
    expect(openDataDirectory(folder, NO_DATABASE).path).toBe(folder);
  });
});

describe('a damaged credential', () => {
  it.each(['ca.key', 'ca.pem', 'tokens.json', 'viewer-token'])('%s of 0 bytes is refused', async (name) => {
    await aCluster();
    writeFileSync(join(folder, name), '');
    await expect(openCredentials(openDataDirectory(folder, ENGINE_DATABASE), NOW_MS)).rejects.toThrow(
      new RegExp(`${name} is damaged \\(0 characters\\)`),
    );
  });
});

describe('the permissions of a data directory', () => {
  it('are for the owner only', async () => {
    const file = await aCluster();
    for (const directory of [folder, join(folder, 'data')]) expect(modeOf(directory)).toBe('700');
    for (const each of [file, ...['ca.key', 'tokens.json', 'viewer-token'].map((name) => join(folder, name))]) {
      expect(modeOf(each)).toBe('600');
    }
  });

  it('are repaired where they are open, except of files that are not ours', async () => {
    const file = await aCluster();
    writeFileSync(join(folder, 'notes.txt'), 'of a person');
    for (const directory of [folder, join(folder, 'data')]) chmodSync(directory, 0o755);
    for (const each of [file, join(folder, 'ca.pem'), join(folder, 'notes.txt')]) chmodSync(each, 0o644);
    openDataDirectory(folder, ENGINE_DATABASE);
    expect([folder, join(folder, 'data')].map(modeOf)).toEqual(['700', '700']);
    expect([file, join(folder, 'ca.pem'), join(folder, 'notes.txt')].map(modeOf)).toEqual(['600', '600', '644']);
  });

  it('of a directory of somebody else are not changed: it is refused with the command', () => {
    mkdirSync(folder);
    chmodSync(folder, 0o755);
    writeFileSync(join(folder, 'letter.txt'), 'x');
    expect(() => openDataDirectory(folder, ENGINE_DATABASE)).toThrow(`run chmod 700 ${folder}`);
    expect(modeOf(folder)).toBe('755');
    expect(readdirSync(folder)).toEqual(['letter.txt']);
  });
});

it.runIf(process.platform === 'linux')(
  'a directory that cannot be made, in /proc, is refused and not waited for',
  () => {
    expect(() => openDataDirectory('/proc/nodekeeper/data', ENGINE_DATABASE)).toThrow(
      'the data directory /proc/nodekeeper/data cannot be used: ENOENT',
    );
  },
);
