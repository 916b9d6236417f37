/** The schemas of docs/events/, for what is sent. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';

interface Described {
  readonly properties?: Readonly<Record<string, Described>>;
}

/** Faults of an event as a receiver gets it: those of the schema, and fields that the schema does not name. */
export function eventFaults(event: Readonly<Record<string, unknown>>): string[] {
  const type = String(event['detail-type']);
  const schema = JSON.parse(readFileSync(join(repositoryRoot, 'docs/events', `${type}.json`), 'utf8')) as Parameters<
    typeof z.fromJSONSchema
  >[0];
  const parsed = z.fromJSONSchema(schema).safeParse(event);
  const undescribed = namesBeyond(event['detail'], (schema as Described).properties?.['detail'], 'detail');
  return [
    ...(parsed.success ? [] : parsed.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`)),
    ...undescribed,
  ];
}

function namesBeyond(value: unknown, described: Described | undefined, path: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([name, part]) => {
    const schema = described?.properties?.[name];
    return schema === undefined ? [`${path}.${name} is not described`] : namesBeyond(part, schema, `${path}.${name}`);
  });
}
