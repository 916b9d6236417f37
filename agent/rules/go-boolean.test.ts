import { expect, it } from 'vitest';
import { parseGoBoolean } from './go-boolean.ts';

it('a boolean of Go is one of twelve words', () => {
  for (const text of ['1', 't', 'T', 'true', 'TRUE', 'True']) expect(parseGoBoolean(text), text).toBe(true);
  for (const text of ['0', 'f', 'F', 'false', 'FALSE', 'False']) expect(parseGoBoolean(text), text).toBe(false);
  for (const text of ['', 'yes', 'tRUE', ' true', '2']) expect(parseGoBoolean(text), text).toBeUndefined();
});
