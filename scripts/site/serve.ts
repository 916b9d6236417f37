/** Serves the built site on loopback, below its base. VitePress's own preview listens on every address. */
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { extname, join, normalize } from 'node:path';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webp': 'image/webp',
};

/** @returns the server, which listens, and the address of the first page */
export function serveSite(
  directory: string,
  base: string,
  port: number,
): Promise<{ readonly server: Server; readonly address: string }> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const file = fileOf(directory, base, pathname);
    if (file === undefined) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('not found\n');
      return;
    }
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
    createReadStream(file)
      .on('error', (error) => response.destroy(error))
      .pipe(response);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      const address = server.address();
      const served = typeof address === 'object' && address !== null ? address.port : port;
      resolve({ server, address: `http://127.0.0.1:${served}${base}` });
    });
  });
}

function fileOf(directory: string, base: string, pathname: string): string | undefined {
  if (!pathname.startsWith(base)) return undefined;
  const encoded = pathname.slice(base.length);
  // Addresses of the site are ASCII. Others, and malformed ones, name no file.
  if (!/^(?:[^%]|%[0-7][\da-f])*$/i.test(encoded)) return undefined;
  const path = normalize(decodeURIComponent(encoded));
  if (path.startsWith('..')) return undefined;
  const file = join(directory, pathname.endsWith('/') ? join(path, 'index.html') : path);
  return existsSync(file) && statSync(file).isFile() ? file : undefined;
}
