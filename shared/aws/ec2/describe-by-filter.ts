/** Describes resources by filter: 200 ids per call, every page of each response. */
import { defined } from '../../defined.ts';
import type { DescribeInput } from './api.ts';
import type { Pass } from './call-pacing.ts';
import { Ec2Error, type Failure } from './errors.ts';

/** Values that EC2 accepts in one filter. */
const IDS_PER_CALL = 200;
/** The results of 200 ids fit one page, but EC2 may return them in several. */
const PAGES_MAX = 10;

/** What a call returned about one id: undefined if the response lacks it. */
export type Described<Found> = { readonly found: Found | undefined } | Failure;

/** Every id with its result. A failed call affects only the ids of that call. */
export async function describeByFilter<Found>(
  pass: Pass,
  ids: readonly string[],
  describeChunk: (chunk: readonly string[]) => Promise<ReadonlyMap<string, Found>>,
): Promise<ReadonlyMap<string, Described<Found>>> {
  const results = new Map<string, Described<Found>>();
  const chunks: string[][] = [];
  for (let first = 0; first < ids.length; first += IDS_PER_CALL) chunks.push(ids.slice(first, first + IDS_PER_CALL));
  await pass.callEach(
    chunks,
    async (chunk) => {
      const found = await describeChunk(chunk);
      for (const id of chunk) results.set(id, { found: found.get(id) });
    },
    (chunk, failure) => {
      for (const id of chunk) results.set(id, failure);
    },
  );
  return results;
}

/** @throws Ec2Error `TooManyPages`, and what the call throws */
export async function everyPage<Page extends { readonly NextToken?: string | undefined }>(
  filter: DescribeInput['filter'],
  describe: (input: DescribeInput) => Promise<Page>,
  onPage: (page: Page) => void,
): Promise<void> {
  let nextToken: string | undefined;
  for (let count = 0; count < PAGES_MAX; count += 1) {
    const page = await describe({ filter, ...defined({ nextToken }) });
    onPage(page);
    nextToken = page.NextToken === '' ? undefined : page.NextToken;
    if (nextToken === undefined) return;
  }
  throw new Ec2Error('TooManyPages', `more than ${PAGES_MAX} pages for ${filter.values.length} ids`);
}
