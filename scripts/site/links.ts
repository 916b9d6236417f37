/** What is wrong with the built site: dead links and anchors, and whatever a browser would load from another host. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** @param base path of the site on its host, with a slash at both ends */
export function faultsOfSite(directory: string, base: string): string[] {
  const files = new Set(globSync('**/*', { cwd: directory }));
  const pages = new Map(
    [...files]
      .filter((file) => file.endsWith('.html'))
      .map((file) => [file, readFileSync(join(directory, file), 'utf8')]),
  );
  const anchors = new Map([...pages].map(([file, html]) => [file, attributes(html, 'id')]));
  const faults = [...pages].flatMap(([file, html]) => [
    ...[...attributes(html, 'href'), ...attributes(html, 'src')].flatMap((to) => faultOf(file, to)),
    ...loadedFromElsewhere(html).map((address) => `${file}: ${address} is loaded from another host`),
  ]);
  const styles = [...files].filter((file) => file.endsWith('.css'));
  for (const file of styles) {
    for (const [, address] of readFileSync(join(directory, file), 'utf8').matchAll(/url\(["']?(https?:[^)"']+)/g)) {
      faults.push(`${file}: ${address} is loaded from another host`);
    }
  }
  return [...new Set(faults)];

  function faultOf(file: string, to: string): string[] {
    if (/^(?:[a-z]+:|\/\/)/.test(to)) return [];
    const [path = '', anchor = ''] = decodeURI(to.replaceAll('&amp;', '&')).split('#');
    const target = path === '' ? file : pathOf(file, path);
    if (target === undefined || !files.has(target)) return [`${file}: ${to} does not exist`];
    if (anchor === '' || anchors.get(target)?.includes(anchor) === true) return [];
    return [`${file}: ${to} has no heading`];
  }

  /** The file that a static server sends. Absent: outside of the site. */
  function pathOf(file: string, path: string): string | undefined {
    if (path.startsWith('/') && !path.startsWith(base)) return undefined;
    const whole = path.startsWith('/') ? path.slice(base.length) : join(dirname(file), path);
    if (whole === '' || whole === '.' || whole.endsWith('/')) return join(whole, 'index.html');
    return files.has(whole) || !files.has(`${whole}.html`) ? whole : `${whole}.html`;
  }
}

const attributes = (html: string, name: string): string[] =>
  [...html.matchAll(new RegExp(`\\s${name}="([^"]*)"`, 'g'))].map(([, value = '']) => value);

const loadedFromElsewhere = (html: string): string[] =>
  [...html.matchAll(/<(?:script|link|img|iframe|source)\b[^>]*\s(?:src|href)="((?:https?:)?\/\/[^"]+)"/g)].map(
    ([, address = '']) => address,
  );
