/** All pods that the API binds to this node, in pages. */
import { defined } from '../../shared/domain/defined.ts';
import { recordOf, recordsOf, textOf } from '../../shared/kube/normal-form.ts';
import type { KubeObject } from '../../shared/kube/types.ts';
import type { KubeAnswer, KubeApi } from '../ports/kube-api.ts';
import { answeredWith, describeAnswer } from '../rules/kube-answer.ts';

const PAGE_PODS = 250;
/** Far more than one machine runs. Finished pods are included. */
const PAGES_MAX = 40;

export type PodList =
  | { readonly kind: 'listed'; readonly pods: readonly KubeObject[] }
  | { readonly kind: 'failed'; readonly why: string; readonly answer?: KubeAnswer };

/** Lists all pages or fails: the pods of a missing page would look deleted. */
export async function listPods(api: KubeApi, nodeName: string, stop?: AbortSignal): Promise<PodList> {
  const query = `fieldSelector=${encodeURIComponent(`spec.nodeName=${nodeName}`)}&limit=${PAGE_PODS}`;
  const pods: KubeObject[] = [];
  let token = '';
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const answer = await api.send({
      method: 'GET',
      path: `/api/v1/pods?${query}${token === '' ? '' : `&continue=${encodeURIComponent(token)}`}`,
      ...defined({ signal: stop }),
    });
    if (answer.kind !== 'answered' || !answeredWith(answer, 200)) {
      return { kind: 'failed', why: describeAnswer(answer), answer };
    }
    const body = recordOf(answer.body);
    if (!Array.isArray(body['items'])) return { kind: 'failed', why: 'the answer is not a list', answer };
    for (const item of recordsOf(body['items'])) {
      const pod = { ...item, metadata: recordOf(item['metadata']) } as KubeObject;
      if (textOf(pod.metadata.uid) !== '' && pod.spec?.['nodeName'] === nodeName) pods.push(pod);
    }
    token = textOf(recordOf(body['metadata'])['continue']);
    if (token === '') return { kind: 'listed', pods };
  }
  return { kind: 'failed', why: `more than ${PAGE_PODS * PAGES_MAX} pods` };
}
