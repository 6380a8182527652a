// Rows that fly past. Nobody reads them but to see where they are, so they have a name and what the
// table is sorted by; and they are made by hand, since whole rows would hold the scrolling up.

export interface Brief<Row> {
  /** Where the text stands and how wide it may be. */
  left: number;
  width: number;
  number?: boolean;
  text: (row: Row) => string;
}

export class Flight<Row> {
  private readonly drawn = new Map<number, HTMLElement>();

  constructor(
    private readonly layer: HTMLElement,
    private readonly height: number,
  ) {}

  /** Exactly the rows from `first` to before `last`, but for those that are `there` anyway. */
  show(rows: readonly Row[], first: number, last: number, there: { first: number; last: number }, briefs: readonly Brief<Row>[]): void {
    const isWanted = (place: number) => place >= first && place < last && !(place >= there.first && place < there.last);
    for (const [place, element] of this.drawn) {
      if (isWanted(place)) continue;
      element.remove();
      this.drawn.delete(place);
    }
    for (let place = first; place < Math.min(last, rows.length); place++) {
      if (!isWanted(place) || this.drawn.has(place)) continue;
      const element = this.make(rows[place]!, place, briefs);
      this.drawn.set(place, element);
      this.layer.append(element);
    }
  }

  clear(): void {
    this.layer.replaceChildren();
    this.drawn.clear();
  }

  private make(row: Row, place: number, briefs: readonly Brief<Row>[]): HTMLElement {
    const element = document.createElement("div");
    element.className = "flying-row";
    element.style.top = `${place * this.height}px`;
    for (const brief of briefs) {
      const words = document.createElement("span");
      words.textContent = brief.text(row);
      words.style.left = `${brief.left}px`;
      if (brief.number) {
        words.style.width = `${brief.width}px`;
        words.className = "number";
      }
      element.append(words);
    }
    return element;
  }
}
