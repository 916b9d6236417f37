/**
 * Custom resources: units and time of definitions, creations, lists, applies and watches, beside those of a built-in
 * kind. The API runs over tables in memory, in one process.
 */
import { memoryItemStore } from '../shared/store/memory/item-store.ts';
import { APPLY, type ApiAnswer, apiInMemory } from '../test/support/api-in-memory.ts';
import {
  DEFINITIONS,
  longSchema,
  widget,
  widgetDefinition,
  widgetsIn,
  widgetVersion,
} from '../test/support/custom-definition.ts';

import { type Benchmark, type Report, readOptions, rounded, wholeNumber } from './benchmark.ts';

const WIDGETS = widgetsIn('default');
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
/** Samples of what is measured one by one. */
const SAMPLES = 100;
const LARGE_CHARACTERS = 1_400_000;

export const crds: Benchmark = {
  name: 'crds',
  about: 'custom resources: units and time of definitions, creations, lists, applies and watches',
  usage: 'crds [--definitions 100] [--objects 10000]',
  smallest: ['--definitions', '3', '--objects', '20'],
  async run(report, words) {
    const text = { type: 'string' } as const;
    const { definitions, objects } = readOptions(words, { definitions: text, objects: text });
    await measure(report, {
      definitions: wholeNumber('definitions', definitions, { least: 1, most: 1_000, otherwise: 100 }),
      objects: wholeNumber('objects', objects, { least: 10, most: 100_000, otherwise: 10_000 }),
    });
  },
};

async function measure(
  report: Report,
  { definitions, objects }: { definitions: number; objects: number },
): Promise<void> {
  let [readUnits, writeUnits] = [0, 0];
  const items = memoryItemStore({
    onConsumed(units) {
      readUnits += units.readUnits;
      writeUnits += units.writeUnits;
    },
  });
  const api = apiInMemory({ items });
  const ok = async (method: string, path: string, send: Parameters<typeof api.send>[2] = {}): Promise<ApiAnswer> => {
    const answer = await api.send(method, path, send);
    if (answer.code >= 300) throw new Error(`${method} ${path}: ${answer.code} ${answer.text.slice(0, 300)}`);
    return answer;
  };
  const phase = async (work: string, of: number, act: () => Promise<unknown>): Promise<void> => {
    [readUnits, writeUnits] = [0, 0];
    const startedMs = performance.now();
    await act();
    const ms = performance.now() - startedMs;
    report({
      work,
      of,
      readUnits: rounded(readUnits / of),
      writeUnits: rounded(writeUnits / of),
      ms: rounded(ms / of),
    });
  };
  const repeat = async (count: number, act: (index: number) => Promise<unknown>): Promise<void> => {
    for (let index = 0; index < count; index += 1) await act(index);
  };
  const configMap = (index: number) => ({ metadata: { name: `c${index}` }, data: { size: String(index) } });

  await phase('ConfigMap created, no definitions', SAMPLES, () =>
    repeat(SAMPLES, (index) => ok('POST', CONFIG_MAPS, { body: configMap(index) })),
  );
  await phase('definition created', definitions, () =>
    repeat(definitions, (index) => {
      const names = index === 0 ? {} : { plural: `kind${index}s`, kind: `Kind${index}`, shortNames: [] };
      return ok('POST', DEFINITIONS, { body: widgetDefinition(undefined, names) });
    }),
  );
  const schema = { openAPIV3Schema: longSchema(LARGE_CHARACTERS) };
  const large = widgetDefinition([widgetVersion('v1', { schema, selectableFields: [], subresources: {} })], {
    plural: 'larges',
    kind: 'Large',
    shortNames: [],
  });
  await phase('definition of 1.4 million characters created', 1, () => ok('POST', DEFINITIONS, { body: large }));
  await phase('definition of 1.4 million characters read', 1, () => ok('GET', `${DEFINITIONS}/larges.example.com`));
  await phase('ConfigMap created, with definitions', SAMPLES, () =>
    repeat(SAMPLES, (index) => ok('POST', CONFIG_MAPS, { body: configMap(SAMPLES + index) })),
  );
  await phase('custom resource created', objects, () =>
    repeat(objects, (index) => ok('POST', WIDGETS, { body: widget(`w${index}`, { size: 1 + (index % 99) }) })),
  );
  await phase('custom resource read', SAMPLES, () =>
    repeat(SAMPLES, (index) => ok('GET', `${WIDGETS}/w${index % objects}`)),
  );
  await phase('custom resource applied', SAMPLES, () =>
    repeat(SAMPLES, (index) => {
      const body = widget(`w${index % objects}`, { replicas: index });
      return ok('PATCH', `${WIDGETS}/w${index % objects}?fieldManager=bench`, { contentType: APPLY, body });
    }),
  );
  await phase('apply that changes nothing', SAMPLES, () =>
    repeat(SAMPLES, () =>
      ok('PATCH', `${WIDGETS}/w0?fieldManager=again`, { contentType: APPLY, body: widget('w0', { port: 1 }) }),
    ),
  );
  const { resourceVersion } = (await ok('GET', `${WIDGETS}?limit=1`)).body.metadata;
  await phase('list of all custom resources', 1, () => ok('GET', `${WIDGETS}?limit=${objects}`));
  const changed = Math.min(500, objects);
  await repeat(changed, (index) =>
    ok('PATCH', `${WIDGETS}/w${index}?fieldManager=watched`, {
      contentType: APPLY,
      body: widget(`w${index}`, { code: 'abc' }),
    }),
  );
  await phase('event of a watch', changed, () => ok('GET', `${WIDGETS}?watch=1&resourceVersion=${resourceVersion}`));
  await phase('discovery in the aggregated form', 1, () =>
    ok('GET', '/apis', { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' }),
  );
}
