import { Empty } from "../components/States";
import type { PageProps } from "../routes";

export default function Page(_props: PageProps) {
  return <Empty what="This view is being built." />;
}
