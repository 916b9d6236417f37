import { validateHeaderValue } from 'node:http';
import { expect, it, onTestFinished, vi } from 'vitest';
import { warningHeaders } from './http.ts';

const warning = (...texts: string[]): string | undefined => warningHeaders(texts)['warning'];

it('sends each warning as a quoted text', () => {
  expect(warning()).toBeUndefined();
  expect(warning('unknown field "spec.a\\b"', 'two')).toBe('299 - "unknown field \\"spec.a\\\\b\\"", 299 - "two"');
});

it('escapes what a header cannot have', () => {
  const text = warning('unknown field "spec.\u5927\n\u{1f600}"') ?? '';
  expect(text).toBe('299 - "unknown field \\"spec.\\\\u5927\\\\u000a\\\\ud83d\\\\ude00\\""');
  expect(() => validateHeaderValue('warning', text)).not.toThrow();
});

it('cuts long warnings, and sends the first of many', () => {
  const some = ['x'.repeat(3_000), 'y'.repeat(1_096)];
  expect(warning(...some)).toBe(`299 - "${some[0]}", 299 - "${some[1]}"`);
  expect(warning(...some, 'z')).toBe(`299 - "${'x'.repeat(256)}", 299 - "${'y'.repeat(256)}", 299 - "z"`);
  expect(warning(...Array(200).fill('x'.repeat(900)))?.match(/299/g)).toHaveLength(16);
  expect(warning(...Array(200).fill('\u5927'.repeat(900)))!.length).toBeLessThan(10_240);
  expect(warning(...Array(200).fill('x'.repeat(30)))!.length).toBeLessThan(10_240);
});

it('escapes no more of a text than it sends', () => {
  const long = '\u5927'.repeat(100_000);
  const replaced = vi.spyOn(String.prototype, 'replace');
  onTestFinished(() => replaced.mockRestore());
  expect(warning(...Array(100).fill(long))!.length).toBeLessThan(10_240);
  const lengths = replaced.mock.contexts.map((text) => String(text).length);
  expect(lengths.length).toBeGreaterThan(0);
  expect(Math.max(...lengths)).toBeLessThan(10_000);
});
