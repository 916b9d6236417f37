/** The installer that verifies a release, with signatures made here and by the program minisign. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const SCRIPT = join(HERE, 'install-release.sh');
const FOLDER = `nodekeeper-agent-9.9.9-linux-${process.arch === 'arm64' ? 'arm64' : 'x64'}`;
const ARCHIVE = `${FOLDER}.tar.gz`;
const PACKAGE = 'nodekeeper-agent_9.9.9_amd64.deb';
const COMMENT = 'nodekeeper 9.9.9';
/** What the script runs, but for openssl and minisign. */
const PROGRAMS =
  'awk base64 cat chmod cp dirname grep gzip head id install ln mkdir mktemp mv od rm sed sha256sum sh tail tar tr uname wc';

const base64 = (...parts: readonly Uint8Array[]): string => Buffer.concat(parts).toString('base64');

/** A key of minisign. The program prints the bytes of an ID from the last to the first. */
class Key {
  readonly #keys = generateKeyPairSync('ed25519');
  readonly #id: Buffer;
  constructor(id: string) {
    this.#id = Buffer.from(id, 'hex').reverse();
  }
  get #private(): KeyObject {
    return this.#keys.privateKey;
  }
  get line(): string {
    return base64(
      Buffer.from('Ed'),
      this.#id,
      this.#keys.publicKey.export({ type: 'spki', format: 'der' }).subarray(12),
    );
  }
  /** @param algorithm ED: over the hash; Ed: over the file */
  signature(content: Uint8Array, algorithm: 'ED' | 'Ed' | 'XX' = 'ED'): string {
    const message = algorithm === 'Ed' ? content : createHash('blake2b512').update(content).digest();
    const signature = sign(null, message, this.#private);
    return [
      'untrusted comment: any',
      base64(Buffer.from(algorithm), this.#id, signature),
      `trusted comment: ${COMMENT}`,
      `${base64(sign(null, Buffer.concat([signature, Buffer.from(COMMENT)]), this.#private))}\n`,
    ].join('\n');
  }
}

const ID = '0123456789ABCDEF';

describe('install-release.sh', () => {
  let directory: string;
  let from: string;
  let key: Key;
  const file = (name: string): string => join(from, name);
  const text = (name: string): string => readFileSync(file(name), 'utf8');
  const root = (): string => join(directory, 'root');
  const endorse = (with_: Key = key, algorithm?: 'Ed' | 'XX'): void =>
    writeFileSync(file('SHA256SUMS.minisig'), with_.signature(readFileSync(file('SHA256SUMS')), algorithm));
  /** Signed, as the key's owner would by mistake. */
  const sums = (change: (right: string) => string): void => {
    writeFileSync(file('SHA256SUMS'), change(text('SHA256SUMS')));
    endorse();
  };
  const change = (name: string, how: (right: string) => string): void => writeFileSync(file(name), how(text(name)));

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-release-test-'));
    from = join(directory, 'downloads');
    key = new Key(ID);
    const folder = join(directory, FOLDER);
    for (const each of [from, folder, join(directory, 'tmp')]) mkdirSync(each);
    for (const name of ['install.sh', 'nodekeeper-agent.service', 'nodekeeper-pods.service'])
      copyFileSync(join(HERE, name), join(folder, name));
    for (const name of ['nodekeeper-agent.mjs', 'start-agent.mjs']) writeFileSync(join(folder, name), '');
    execFileSync('tar', ['-czf', file(ARCHIVE), '-C', directory, FOLDER]);
    writeFileSync(file(PACKAGE), 'a package');
    writeFileSync(file('SHA256SUMS'), execFileSync('sha256sum', [ARCHIVE, PACKAGE], { cwd: from }));
    endorse();
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const run = (args: readonly string[], path = process.env['PATH']) => {
    const env = { PATH: path, TMPDIR: join(directory, 'tmp') };
    const { status, stdout, stderr } = spawnSync('sh', [SCRIPT, ...args], { cwd: from, encoding: 'utf8', env });
    expect(readdirSync(env.TMPDIR)).toEqual([]);
    return { status, stdout, stderr };
  };
  const options = (): string[] => ['--root', root(), '--endpoint', 'https://api.example', '--bootstrap-token', 'a.b'];
  const refusal = (args: readonly string[], path?: string): string => {
    const { status, stderr } = run(args, path);
    expect(status).toBe(1);
    expect(existsSync(root())).toBe(false);
    return stderr;
  };
  const refused = (because: string): string => `install-release.sh: ${because}\n`;
  /** A PATH without openssl and minisign, and with these programs. */
  const pathWith = (programs: Readonly<Record<string, string>>): string => {
    const bin = join(directory, 'bin');
    mkdirSync(bin);
    const find = (name: string): string =>
      execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
    for (const name of PROGRAMS.split(' ')) symlinkSync(find(name), join(bin, name));
    for (const [name, script] of Object.entries(programs))
      writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return bin;
  };

  it.each(['ED', 'Ed'] as const)('installs the archive for this machine, signed in the form %s', (algorithm) => {
    if (algorithm === 'Ed') endorse(key, algorithm);
    const { status, stdout, stderr } = run(['--key', key.line, ...options()]);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(new RegExp(`^signed: ${COMMENT}, key ${ID}\nverified: ${ARCHIVE}\n`));
    expect(existsSync(join(root(), 'etc/nodekeeper/agent.yaml'))).toBe(true);
    expect(run(['--key', key.line, '--root', root(), '--uninstall', '--purge']).status).toBe(0);
    expect(existsSync(join(root(), 'etc/nodekeeper'))).toBe(false);
  });

  it('reads the key from its file, and the release from another directory', () => {
    const path = join(directory, 'nodekeeper.pub');
    writeFileSync(path, `untrusted comment: minisign public key ${ID}\n${key.line}\n`);
    const { status, stdout } = run(['--key', path, '--from', `${directory}/./downloads`, '--verify', PACKAGE]);
    expect([status, stdout]).toEqual([0, `signed: ${COMMENT}, key ${ID}\nverified: ${PACKAGE}\n`]);
  });

  /** What is wrong with the signature: minisign refuses it, too. */
  const SIGNATURES: Readonly<Record<string, readonly [change: () => void, because: string]>> = {
    'a signature of another content': [
      () => change('SHA256SUMS', (right) => right.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))),
      `SHA256SUMS is not what the key ${ID} has signed`,
    ],
    'half of SHA256SUMS': [
      () => change('SHA256SUMS', (right) => right.slice(0, right.indexOf('\n') + 1)),
      `SHA256SUMS is not what the key ${ID} has signed`,
    ],
    'a signature of another key': [
      () => endorse(new Key('FEDCBA9876543210')),
      `SHA256SUMS.minisig is of key FEDCBA9876543210, and --key is ${ID}`,
    ],
    'another key with the same ID': [() => endorse(new Key(ID)), `SHA256SUMS is not what the key ${ID} has signed`],
    'another comment': [
      () => change('SHA256SUMS.minisig', (right) => right.replace(COMMENT, 'nodekeeper 9.9.10')),
      `the comment in SHA256SUMS.minisig is not what the key ${ID} has signed`,
    ],
    'a signature over the file that says it is over the hash': [
      () => {
        endorse(key, 'Ed');
        // RW… is the base64 of Ed, RU… of ED.
        change('SHA256SUMS.minisig', (right) => right.replace('\nRW', '\nRU'));
      },
      `SHA256SUMS is not what the key ${ID} has signed`,
    ],
    'an unknown algorithm': [() => endorse(key, 'XX'), 'SHA256SUMS.minisig has an algorithm that is not of minisign'],
    'half of a signature': [
      () => truncateSync(file('SHA256SUMS.minisig'), 150),
      'SHA256SUMS.minisig is not a signature of minisign, or not copied as a whole',
    ],
    'a short signature': [
      () => change('SHA256SUMS.minisig', (right) => right.replace(/....=?\ntrusted/, '\ntrusted')),
      'SHA256SUMS.minisig is not a signature of minisign, or not copied as a whole',
    ],
    'an empty signature': [
      () => truncateSync(file('SHA256SUMS.minisig')),
      'SHA256SUMS.minisig is not a signature of minisign, or not copied as a whole',
    ],
    'no signature': [() => rmSync(file('SHA256SUMS.minisig')), 'SHA256SUMS.minisig is not in .'],
    'no SHA256SUMS': [() => rmSync(file('SHA256SUMS')), 'SHA256SUMS is not in .'],
  };
  it.each(Object.keys(SIGNATURES))('refuses %s, before it runs anything of the release', (name) => {
    const [spoil, because] = SIGNATURES[name]!;
    spoil();
    expect(refusal(['--key', key.line, ...options()])).toBe(refused(because));
  });

  const differs = (name: string): string =>
    `${name} does not have its sum of SHA256SUMS: it was changed, or not copied as a whole`;
  it.each<readonly [name: string, change: () => void, because: string]>([
    ['a changed file', () => writeFileSync(file(ARCHIVE), 'other'), differs(ARCHIVE)],
    ['half of a file', () => truncateSync(file(ARCHIVE), 1_000), differs(ARCHIVE)],
    ['a missing file', () => rmSync(file(ARCHIVE)), `${ARCHIVE} is not in .`],
    [
      'a file without a sum',
      () => sums((right) => right.slice(right.indexOf('\n') + 1)),
      `SHA256SUMS does not name ${ARCHIVE.replace('9.9.9', 'VERSION')}`,
    ],
    [
      'two versions',
      () => sums((right) => `${right}${right.split('\n')[0]!.replace('9.9.9', '9.9.8')}\n`),
      `SHA256SUMS names more than one ${ARCHIVE.replace('9.9.9', 'VERSION')}`,
    ],
    [
      'a name twice',
      () => sums((right) => `${right}${'0'.repeat(64)}  ${ARCHIVE}\n`),
      `SHA256SUMS: line 3 names ${ARCHIVE} again`,
    ],
    ...['../x', '/etc/passwd', 'a/b', '..', '-rf', 'a b', 'x\r', ''].map(
      (name) =>
        [
          `the name ${JSON.stringify(name)}`,
          () => sums((right) => `${right}${'0'.repeat(64)}  ${name}\n`),
          'SHA256SUMS: line 3 is not a sum and a file name',
        ] as const,
    ),
    ['a short sum', () => sums((right) => right.replace(/^./, '')), 'SHA256SUMS: line 1 is not a sum and a file name'],
  ])('refuses %s, before it runs anything of the release', (_, spoil, because) => {
    spoil();
    expect(refusal(['--key', key.line, ...options()])).toBe(refused(because));
  });

  it('refuses to verify what SHA256SUMS does not name, and every file after a wrong one', () => {
    writeFileSync(file('extra.deb'), 'x');
    const verify = (...names: readonly string[]) => refusal(['--key', key.line, '--verify', ...names]);
    expect(verify(PACKAGE, 'extra.deb')).toBe(refused('SHA256SUMS does not name extra.deb'));
    expect(verify('../downloads/extra.deb')).toBe(refused('SHA256SUMS does not name ../downloads/extra.deb'));
    expect(verify('')).toBe(refused('SHA256SUMS does not name '));
    writeFileSync(file(PACKAGE), 'a packagf');
    expect(verify(PACKAGE, ARCHIVE)).toBe(refused(differs(PACKAGE)));
  });

  it('refuses what is not a public key of minisign', () => {
    const pem = join(directory, 'key.pem');
    writeFileSync(pem, generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }));
    const wrong = [pem, '/missing', key.line.slice(4), `RU${key.line.slice(2)}`, '*'];
    for (const each of wrong) {
      const because = `--key ${each} is neither a file with a public key of minisign nor its line RW…`;
      expect(refusal(['--key', each, ...options()])).toBe(refused(because));
    }
    expect(refusal(options())).toBe(refused('--key is needed, before the options of install.sh'));
  });

  it('needs openssl 3.0 or minisign', () => {
    // As that of Debian 10 and 11.
    const path = pathWith({ openssl: 'echo "Usage: pkeyutl [options]" >&2; exit 1' });
    const because = 'openssl 3.0 or later, or minisign, is needed to verify signatures';
    expect(refusal(['--key', key.line, ...options()], path)).toBe(refused(because));
  });

  const none = spawnSync('minisign', ['-v']).error !== undefined;
  describe.skipIf(none)(`compared with minisign${none ? ' (skipped: no minisign)' : ''}`, () => {
    const minisign = (...args: readonly string[]): number | null => spawnSync('minisign', args, { cwd: from }).status;
    const accepts = (): boolean => minisign('-V', '-P', key.line, '-m', 'SHA256SUMS') === 0;

    it.each([[[]], [['-l']]])('accepts what it signs (%j)', (form) => {
      const [open, secret] = [join(directory, 'its.pub'), join(directory, 'its.key')];
      expect(minisign('-G', '-W', '-p', open, '-s', secret)).toBe(0);
      expect(minisign('-S', ...form, '-s', secret, '-m', 'SHA256SUMS', '-t', 'of its own')).toBe(0);
      const { status, stdout } = run(['--key', open, '--verify', ARCHIVE, PACKAGE]);
      expect([status, stdout.split(',')[0]]).toEqual([0, 'signed: of its own']);
    });

    it('signs here what it accepts', () => {
      expect(accepts()).toBe(true);
      endorse(key, 'Ed');
      expect(accepts()).toBe(true);
    });

    it.each(Object.keys(SIGNATURES))('refuses with it %s', (name) => {
      SIGNATURES[name]![0]();
      expect(accepts()).toBe(false);
    });

    it('verifies with it where openssl is older', () => {
      const found = execFileSync('sh', ['-c', 'command -v minisign'], { encoding: 'utf8' }).trim();
      const path = pathWith({ minisign: `exec ${found} "$@"` });
      const args = ['--key', key.line, ...options()];
      change('SHA256SUMS', (right) => right.replace('  ', ' *'));
      expect(refusal(args, path)).toBe(refused(`SHA256SUMS or its comment is not what the key ${ID} has signed`));
      endorse();
      expect(refusal(args, path)).toBe(refused('SHA256SUMS: line 1 is not a sum and a file name'));
      sums((right) => right.replace(' *', '  '));
      expect(run(args, path)).toMatchObject({ status: 0, stderr: '' });
    });
  });
});
