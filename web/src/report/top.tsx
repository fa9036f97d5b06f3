// The choice of how many rows a figure has.

const CHOICES = [10, 20, 30, 60, 120];

interface Props {
  top: number;
  // How many there are.
  n: number;
  setTop: (top: number) => void;
}

export function TopControl({ top, n, setTop }: Props) {
  const choices = CHOICES.filter((choice) => choice < n);
  const value = top >= n ? "all" : String(top);
  return (
    <label>
      Show{" "}
      <select value={value} onChange={(event) => setTop(event.currentTarget.value === "all" ? Infinity : Number(event.currentTarget.value))}>
        {choices.map((choice) => <option key={choice} value={choice}>first {choice}</option>)}
        <option value="all">all {n}</option>
      </select>
    </label>
  );
}
