import { describe, expect, it } from 'vitest';
import { proxyFor } from './proxy-choice.ts';

const through = (server: string, NO_PROXY = '', HTTPS_PROXY = 'http://proxy.corp:3128') =>
  proxyFor(new URL(server), { HTTPS_PROXY, NO_PROXY })?.host;

describe('the proxy to a server', () => {
  it('is none unless one is set', () => {
    expect(through('https://api.example.com', '', '')).toBeUndefined();
    expect(proxyFor(new URL('https://api.example.com'), { https_proxy: 'proxy.corp:3128' })?.host).toBe(
      'proxy.corp:3128',
    );
  });

  it.each([
    ['https://api.example.com', ''],
    ['https://api.example.com.', ''],
    ['https://api.example.com', 'other.com,ample.com'],
    ['https://example.com', '.example.com'],
    ['https://api.example.com', 'api.example.com:8443'],
    ['https://api.example.com:6443', 'api.example.com:443'],
    ['https://api.example.com', 'api.example.com:443x,10.0.0.0/8'],
    ['https://10.1.2.3', '10.2.0.0/16, 10.1.2.4'],
    ['https://10.1.2.3', 'nonsense/99,/,::/0'],
    ['https://10.1.2.3', '10.1.2.3/,10.1.2.3/x8,10.1.2.3/8x,10.1.2.3/33,10.1.2.3/1e1,10.1.2.3/-1'],
    ['https://[fd00::5]', 'fd00::/129,10.0.0.0/8'],
    ['https://api.example.com', 'nonsense/8'],
  ])('leads to %s with NO_PROXY=%j', (server, exceptions) => {
    expect(through(server, exceptions)).toBe('proxy.corp:3128');
  });

  it.each([
    ['https://api.example.com', '*'],
    ['https://api.example.com', 'x, Example.com'],
    ['https://api.example.com', '.example.com'],
    ['https://api.example.com', 'api.example.com:443'],
    ['https://api.example.com:6443', 'api.example.com:6443'],
    ['https://10.1.2.3', '10.1.0.0/16'],
    ['https://10.1.2.3', '10.1.2.3/32'],
    ['https://[fd00::5]', 'fd00::/8'],
    ['https://[fd00::5]', 'fd00::/64'],
    ['https://[fd00::5]', 'fd00::5/128'],
    ['https://[fd00::5]', '[fd00::5]'],
    ['https://[fd00::5]', 'fd00::5'],
    ['https://localhost:6443', ''],
    ['https://127.0.0.2:6443', ''],
    ['https://[::1]:6443', ''],
  ])('does not stand before %s with NO_PROXY=%j', (server, exceptions) => {
    expect(through(server, exceptions)).toBeUndefined();
  });

  it('speaks HTTP, also over TLS', () => {
    for (const proxy of ['http://proxy.corp:3128', 'https://proxy.corp:3128', 'proxy.corp:3128']) {
      expect(through('https://api.example.com', '', proxy)).toBe('proxy.corp:3128');
    }
  });

  it('is refused when it speaks another protocol', () => {
    expect(() => through('https://api.example.com', '', 'socks5://proxy.corp')).toThrow(TypeError);
  });
});
