import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listenOnLoopback } from '../../../shared/host/loopback.ts';
import { openedBelow } from '../../../test/support/opened-below.ts';
import { startTlsServer } from '../../../test/support/tls-server.ts';
import { until } from '../../../test/support/until.ts';
import { download } from './download.ts';
import { updateFiles } from './update-files.ts';
import { updateKeyOf, updateSource } from './update-source.ts';

const OPTIONS = { environment: {}, certificateAuthority: undefined, apiHost: 'api.example' };

describe('a download', () => {
  let server: Server;
  let base: string;
  const listen = async (answer: RequestListener): Promise<void> => {
    server = createServer(answer);
    const port = await listenOnLoopback(server);
    base = `http://127.0.0.1:${port}`;
  };
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });
  const fetched = async (path: string, bytesMax = 1_000, signal = new AbortController().signal): Promise<string> => {
    const pieces: Uint8Array[] = [];
    for await (const piece of download(`${base}${path}`, { bytesMax, signal }, OPTIONS)) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  };

  it('follows redirects, within a bound', async () => {
    await listen((request, response) => {
      const left = Number(request.url?.slice(1));
      if (left > 0) response.writeHead(302, { location: `/${left - 1}` }).end();
      else response.end('the file');
    });
    expect(await fetched('/5')).toBe('the file');
    await expect(fetched('/6')).rejects.toThrow('more than 5 redirects');
  });

  it('ends at its limit of bytes, with or without a length', async () => {
    await listen((_request, response) => {
      response.write('x'.repeat(600));
      response.end('x'.repeat(600));
    });
    await expect(fetched('/')).rejects.toThrow('the file is larger than 1000 bytes');
  });

  it('is as large as its limit', async () => {
    await listen((_request, response) => response.end('x'.repeat(1_000)));
    expect(await fetched('/')).toHaveLength(1_000);
    await expect(fetched('/', 999)).rejects.toThrow('the file is larger than 999 bytes');
  });

  it('follows a redirect from where it was redirected to, in each of its kinds', async () => {
    const asked: string[] = [];
    await listen((request, response) => {
      asked.push(request.url ?? '');
      const code = Number(request.url?.split('/')[1]);
      if (request.url?.endsWith('/file')) response.end('the file');
      else response.writeHead(code, { location: request.url?.endsWith('/') ? 'file' : './sub/' }).end();
    });
    for (const code of [301, 302, 303, 307, 308]) expect(await fetched(`/${code}/start`)).toBe('the file');
    expect(asked.slice(0, 3)).toEqual(['/301/start', '/301/sub/', '/301/sub/file']);
    await expect(fetched('/304/start')).rejects.toThrow('answered 304');
  });

  it('trusts the authority of the cluster for the host of the API only', async () => {
    const tls = await startTlsServer((_, response) => response.end('the file'));
    const { certificateAuthority } = tls;
    const from = async (apiHost: string) => {
      const limits = { bytesMax: 1_000, signal: new AbortController().signal };
      let text = '';
      for await (const piece of download(tls.url, limits, { environment: {}, certificateAuthority, apiHost }))
        text += Buffer.from(piece).toString();
      return text;
    };
    await listen(() => {});
    expect(await from('127.0.0.1')).toBe('the file');
    await expect(from('api.example')).rejects.toThrow(/certificate/i);
    await tls.close();
  });

  it('names the agent, and closes the connection of an answer that it does not read', async () => {
    const open = new Set<unknown>();
    const asked: unknown[] = [];
    await listen(({ url, headers, socket }, response) => {
      open.add(socket);
      socket.once('close', () => open.delete(socket));
      asked.push([url, headers.accept, headers['user-agent']]);
      response.writeHead(url === '/moved' ? 302 : 503, { location: '/busy' }).write('a part');
    });
    await expect(fetched('/moved')).rejects.toThrow('answered 503');
    await until(() => open.size === 0, { withinMs: 10_000, everyMs: 5 });
    expect(asked).toEqual([
      ['/moved', '*/*', 'nodekeeper-agent'],
      ['/busy', '*/*', 'nodekeeper-agent'],
    ]);
  });

  it('of a redirect that says no place is an answer that is no file', async () => {
    await listen((_request, response) => response.writeHead(302).end());
    await expect(fetched('/')).rejects.toThrow('answered 302');
  });

  it('is of http or https', async () => {
    await listen(() => {});
    base = 'ftp://127.0.0.1';
    await expect(fetched('/')).rejects.toThrow('ftp: is not supported');
  });

  it('fails when the server is silent for too long, before its answer or in it', async () => {
    await listen(({ url }, response) => {
      if (url === '/part') response.write('a part');
    });
    for (const path of ['/', '/part']) {
      const limits = { bytesMax: 1_000, signal: new AbortController().signal };
      const pieces = download(`${base}${path}`, limits, { ...OPTIONS, silenceMs: 30 });
      const read = async () => {
        for await (const _ of pieces);
      };
      await expect(read()).rejects.toThrow(/no byte for 30 ms|aborted/);
    }
  });

  it('fails when the server refuses or cuts the connection, and when it is stopped', async () => {
    const stop = new AbortController();
    await listen((request, response) => {
      if (request.url === '/missing') response.writeHead(404).end();
      else if (request.url === '/cut')
        response.writeHead(200, { 'content-length': '9' }).write('x', () => response.destroy());
      else stop.abort();
    });
    await expect(fetched('/missing')).rejects.toThrow(/answered 404/);
    await expect(fetched('/cut')).rejects.toThrow();
    await expect(fetched('/never', 10, stop.signal)).rejects.toThrow(/abort/i);
  });
});

describe('the directory of agents', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-agents-'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it('is made for its owner, and reads nothing where nothing is', async () => {
    const files = updateFiles(join(directory, 'agents'));
    expect([await files.readText('a'), await files.readLink('a'), await files.names()]).toEqual([
      undefined,
      undefined,
      [],
    ]);
    const file = await files.create('a');
    await file.write(Buffer.from('one '));
    await file.write(Buffer.from('two'));
    await file.sync();
    await file.close();
    await files.syncNames();
    expect(await files.readText('a')).toBe('one two');
    expect(statSync(join(directory, 'agents')).mode & 0o777).toBe(0o700);
    expect(statSync(join(directory, 'agents/a')).mode & 0o777).toBe(0o600);
  });

  it('replaces a link at once, and reads a file as no link', async () => {
    const files = updateFiles(directory);
    for (const target of ['a', 'b']) {
      await files.link('new', target);
      await files.rename('new', 'current');
    }
    expect([readlinkSync(join(directory, 'current')), readdirSync(directory)]).toEqual(['b', ['current']]);
    writeFileSync(join(directory, 'a'), '');
    expect(await files.readLink('a')).toBeUndefined();
  });

  it('replaces a file in place of a link, where there are none', async () => {
    const files = updateFiles(directory, false);
    expect(await files.readLink('current')).toBeUndefined();
    for (const target of ['a', 'b']) {
      await files.link('new', target);
      await files.rename('new', 'current');
    }
    expect([await files.readLink('current'), readFileSync(join(directory, 'current'), 'utf8')]).toEqual(['b', 'b']);
    // None of these files stays open.
    for (let link = 0; link < 5; link += 1) await files.link('new', 'a');
    expect(openedBelow(directory)).toEqual([]);
  });

  it('does not write through a link', async () => {
    const files = updateFiles(directory);
    writeFileSync(join(directory, 'kept'), 'kept');
    await files.link('new', 'kept');
    await (await files.create('new')).close();
    expect(await files.readText('kept')).toBe('kept');
  });

  it('runs a file to print its version', async () => {
    const { publicKey } = generateKeyPairSync('ed25519');
    const source = updateSource({ directory, publicKey, ...OPTIONS });
    writeFileSync(join(directory, 'good.mjs'), 'console.log(process.argv[2] === "--version" ? "2.0.0" : "");');
    writeFileSync(join(directory, 'bad.mjs'), 'this is not a program');
    expect(await source.versionOf('good.mjs')).toBe('2.0.0');
    await expect(source.versionOf('bad.mjs')).rejects.toThrow(/SyntaxError/);
  });
});

it('accepts keys of Ed25519 only', () => {
  const pem = (type: 'ed25519' | 'x25519') =>
    (type === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('x25519')).publicKey.export({
      type: 'spki',
      format: 'pem',
    });
  expect(updateKeyOf(String(pem('ed25519'))).asymmetricKeyType).toBe('ed25519');
  expect(() => updateKeyOf(String(pem('x25519')))).toThrow('a key of type x25519');
  expect(() => updateKeyOf('none')).toThrow();
});
