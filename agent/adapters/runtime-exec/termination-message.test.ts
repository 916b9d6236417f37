import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import {
  isSetUp,
  openSetUpMessage,
  prepareMessageFiles,
  setUpMessage,
  terminationMessage,
} from './termination-message.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = folderForTest();
  file = join(folder, 'main.termination-log');
});

const fallback = { terminationMessagePolicy: 'FallbackToLogsOnError' } as const;
const noTail = () => Buffer.from('');

describe('the message of a container', () => {
  it('begins empty, and everybody may write it', () => {
    writeFileSync(file, 'of an earlier run');
    closeSync(openSetUpMessage(file));
    prepareMessageFiles(file);
    expect(terminationMessage({}, file, 1, noTail)).toBe('');
    expect(statSync(file).mode & 0o777).toBe(0o666);
    expect(existsSync(`${file}.set-up`)).toBe(false);
  });

  it('is the end of its file', () => {
    writeFileSync(file, 'done\n');
    expect(terminationMessage({}, file, 0, noTail)).toBe('done\n');
    writeFileSync(file, `${'a'.repeat(10)}${'b'.repeat(4_096)}`);
    expect(terminationMessage(fallback, file, 1, noTail)).toBe('b'.repeat(4_096));
  });

  it.each([
    ['after an error, if its policy says so', fallback, 1, 'of the output'],
    ['not after a success', fallback, 0, ''],
    ['not by default', {}, 1, ''],
    ['not with the other policy', { terminationMessagePolicy: 'File' as const }, 1, ''],
  ])('is the end of the output %s', (_what, container, exitCode, message) => {
    expect(terminationMessage(container, file, exitCode, () => Buffer.from('of the output'))).toBe(message);
  });

  it('is not of the output when there is one', () => {
    writeFileSync(file, 'own');
    expect(terminationMessage(fallback, file, 1, () => Buffer.from('of the output'))).toBe('own');
  });

  it('has at most 80 lines and 2 KiB of the output', () => {
    const asked: number[] = [];
    const lines = Array.from({ length: 100 }, (_, index) => `${index}\n`).join('');
    const message = terminationMessage(fallback, file, 1, (bytesMax) => {
      asked.push(bytesMax);
      return Buffer.from(lines);
    });
    expect([asked, message.split('\n')[0], message.split('\n').length]).toEqual([[2_048], '20', 81]);
  });

  it('is empty when it cannot be read', () => {
    const fail = () => {
      throw new Error('EIO');
    };
    expect(terminationMessage(fallback, file, 1, fail)).toBe('');
    mkdirSync(file);
    expect(terminationMessage({}, file, 1, noTail)).toBe('');
    // A named pipe would never be read to its end.
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    expect(terminationMessage({}, join(folder, 'pipe'), 1, noTail)).toBe('');
  });
});

it('says whether the process was set up, and why not', () => {
  expect([isSetUp(file), setUpMessage(file)]).toEqual([false, '']);
  const descriptor = openSetUpMessage(file);
  expect(isSetUp(file)).toBe(false);
  writeSync(descriptor, '\n');
  expect([isSetUp(file), setUpMessage(file)]).toEqual([true, '']);
  writeSync(descriptor, 'no such directory\n');
  closeSync(descriptor);
  expect([isSetUp(file), setUpMessage(file)]).toEqual([false, 'no such directory']);
  expect(statSync(`${file}.set-up`).mode & 0o777).toBe(0o600);
});
